import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fixtureArgs } from './fixture-program.ts';

/** A process and the lines that it has printed. */
export interface LineProcess {
  readonly child: ChildProcess;
  readonly lines: string[];
}

/** Starts a command in a process group of its own, so that what it starts ends with it. */
export function startLines(command: string, ...args: string[]): LineProcess {
  return startWith({}, command, ...args);
}

function startWith(env: NodeJS.ProcessEnv, command: string, ...args: string[]): LineProcess {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const lines: string[] = [];
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { child, lines };
}

/** Starts `test/fixtures/<fixture>.ts`. */
export function startFixture(fixture: string, ...args: string[]): LineProcess {
  return startLines(process.execPath, ...fixtureArgs(fixture), ...args);
}

/** `startFixture` with environment variables besides those of this process. */
export function startFixtureWith(
  env: Readonly<Record<string, string>>,
  fixture: string,
  ...args: string[]
): LineProcess {
  return startWith(env, process.execPath, ...fixtureArgs(fixture), ...args);
}

/** Kills it with what it has started, and resolves when all it printed was read. */
export async function killLines({ child }: LineProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  await once(child, 'close');
}
