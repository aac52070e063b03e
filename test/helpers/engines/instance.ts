import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { delimiter, join } from 'node:path';
import { until } from '../cluster.ts';

/** A program that a private instance runs. */
export interface Instance {
  readonly child: ChildProcess;
  /** What it has printed, for the report of a start that failed. */
  readonly output: () => string;
}

/** How long an engine may take to answer after its start. */
const START_MS = 30_000;

/** Folders besides PATH where packages of Debian put the programs of a server. */
function folders(): string[] {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort().reverse() : [];
  const bins = versions.map((version) => `/usr/lib/postgresql/${version}/bin`);
  return [...bins, ...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
}

/** The programs that POSTGRES_BIN, a folder, has if it is set: those of a version. psql works with every server. */
const VERSIONED: readonly string[] = ['initdb', 'postgres'];

/**
 * Returns the path of a program; undefined if this machine does not have it. POSTGRES_BIN and REDIS_SERVER name those
 * of other versions than the installed ones: then no others are used.
 */
export function findProgram(name: string): string | undefined {
  const { POSTGRES_BIN: bin, REDIS_SERVER: redis } = process.env;
  if (name === 'redis-server' && redis !== undefined) return existing(redis);
  if (VERSIONED.includes(name) && bin !== undefined) return existing(join(bin, name));
  return folders()
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

function existing(path: string): string {
  if (!existsSync(path)) throw new Error(`${path} does not exist, which POSTGRES_BIN or REDIS_SERVER names`);
  return path;
}

/**
 * The reason to skip tests that need these programs; false if all are there. `.ci/run` sets REQUIRE_ENGINES, which turns
 * a missing one into a failure.
 */
export function skipWithout(...programs: readonly string[]): string | false {
  const missing = programs.filter((name) => findProgram(name) === undefined);
  if (missing.length === 0) return false;
  const reason = `${missing.join(', ')} not found: install postgresql, pgbouncer and redis-server to run this`;
  if (process.env['REQUIRE_ENGINES'] !== undefined) throw new Error(reason);
  return reason;
}

/** The user and group to run a server as that refuses to run as root; nothing if this process is not root. */
export function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (option: string): number => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** Starts a program that does not end with the terminal of the tests. */
export function startInstance(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number },
): Instance {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  return { child, output: () => output };
}

/** Sends a signal to an instance with all its processes. No effect if it has ended. */
export function signalInstance({ child }: Instance, signal: NodeJS.Signals): void {
  if (hasEnded(child) || child.pid === undefined) return;
  // Processes of PostgreSQL are no process group: each makes a session of its own.
  for (const pid of [child.pid, ...childrenOf(child.pid)]) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

function childrenOf(pid: number): number[] {
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return list === '' ? [] : list.split(' ').map(Number);
}

/** Kills an instance with all its processes, and resolves once it has ended. No effect if it has. */
export async function killInstance(instance: Instance): Promise<void> {
  if (hasEnded(instance.child)) return;
  const exit = once(instance.child, 'exit');
  signalInstance(instance, 'SIGKILL');
  await exit;
}

/** Resolves once somebody accepts connections on a port; rejects with what the instance has printed if it ends before. */
export async function accepts(instance: Instance, port: number): Promise<void> {
  await until(async () => {
    if (hasEnded(instance.child)) throw new Error(`the program ended: ${instance.output()}`);
    const socket = createConnection(port, '127.0.0.1');
    const connected = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    return connected;
  }, START_MS);
}

/** Whether a program has ended. */
export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
