import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';

const built = fileURLToPath(new URL('../../dist/bin/collab.js', import.meta.url));
const source = fileURLToPath(new URL('../../bin/collab.ts', import.meta.url));
const tsx = import.meta.resolve('tsx');

/** Arguments of `node` that run the program: the built one, or the sources while there is none. */
const program: readonly string[] = existsSync(built) ? [built] : [`--import=${tsx}`, source];

/** The command line that runs the program, to which its arguments are added. */
export const collabCommand: readonly string[] = [process.execPath, ...program];

/** A command that does not end by itself is given up after this. */
const TIMEOUT_MS = 60_000;
/** The same for one that goes on: a test may call many commands beside it. */
const RUNNING_TIMEOUT_MS = 600_000;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  /** `COLLAB_*` variables, beside those of the system. */
  readonly env?: Readonly<Record<string, string>>;
  /** Id of the user and of the group as whom it runs; those of this process if absent. */
  readonly uid?: number | undefined;
  /** The file of the program, if that user cannot read the one of this folder. */
  readonly program?: string;
}

/** Runs one command to its end. Its standard input is no terminal. */
export async function collab(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = launch(args, options);
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const texts = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  return { code, ...texts };
}

/** Runs a command with --json, which must end well (or with a code), and returns what it printed: one document. */
export type RunJson<Options> = <T>(
  t: Test,
  args: readonly string[],
  options?: Options & { readonly code?: number },
) => Promise<T>;

/** The `RunJson` of a function that runs a command. */
export function jsonOf<Options extends object>(
  run: (args: readonly string[], options: Options) => Promise<Finished>,
): RunJson<Options> {
  return async <T>(
    t: Test,
    args: readonly string[],
    options: Options & { readonly code?: number } = {} as Options,
  ): Promise<T> => {
    const { code, stdout, stderr } = await run([...args, '--json'], options);
    if (code !== (options.code ?? 0)) t.fail(`collab ${args.join(' ')} exited with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  };
}

/** Runs a command in a process of its own. */
export const collabJson = jsonOf<RunOptions>(collab);

/** The output of `init --json`. */
export interface InitOutput {
  readonly dir: string;
  readonly environment: { readonly id: string; readonly slug: string };
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly jwtSecret: string;
  readonly jwtKid: string;
}

/** Standard error without the progress of an export, which is printed once it takes over a second. */
export function withoutProgress(errors: string): string {
  return errors.replaceAll(/^\S+: \d+ lines, .*\n/gm, '');
}

/** A process that goes on, whose lines are read one after the other. */
export interface Running {
  readonly process: ChildProcess;
  /** The first line of standard output, read or still to come, that passes; each line is seen once. */
  line(passes: (line: string) => boolean): Promise<string>;
  /** Everything on standard error so far. */
  errors(): string;
  /** Sends a signal and resolves with the exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command that goes on; it is ended with the test. */
export function startCollab(t: Test, args: readonly string[], options: RunOptions = {}): Running {
  const child = launch(args, options);
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]();
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), RUNNING_TIMEOUT_MS);
  const end = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    child.kill(signal);
    const code = await ended;
    clearTimeout(timer);
    return code;
  };
  // Not SIGTERM: a server that stops by itself takes five times as long.
  t.teardown(async () => void (await end('SIGKILL')));
  return {
    process: child,
    line: async (passes) => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`collab ${args.join(' ')} ended without the line: ${errors}`);
        if (passes(value)) return value;
      }
    },
    errors: () => errors,
    end,
  };
}

/** A server that is ready. */
export interface Server extends Running {
  readonly url: string;
  /** The output of `start --json`. */
  readonly ready: Partial<InitOutput> & {
    readonly address: string;
    readonly port: number;
    readonly workers: number;
    readonly core: string;
    readonly pid: number;
  };
}

/** Starts a server on a free port and waits until it is ready. */
export async function startServer(
  t: Test,
  dir: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Server> {
  const running = startCollab(t, ['start', '--dir', dir, '--port', '0', '--json', ...args], options);
  const ready = JSON.parse(await running.line((line) => line.startsWith('{"ready":true'))) as Server['ready'];
  return { ...running, url: ready.address, ready };
}

function launch(args: readonly string[], { cwd, env, uid, program: own }: RunOptions): ChildProcess {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('COLLAB_')));
  return spawn(process.execPath, [...(own === undefined ? program : [own]), ...args], {
    cwd,
    env: { ...clean, ...env },
    uid,
    gid: uid,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
