import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../src/cluster/free-port.ts';
import type { InitOutput } from './cli.ts';
import { init, newFolder } from './new-folder.ts';

/** The built program, as `npm run build` makes it. */
export const COLLAB = fileURLToPath(new URL('../../dist/bin/collab.js', import.meta.url));

/** The result of a process of the program. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The keys of the environment that `collab init` makes. */
export type Keys = Omit<InitOutput, 'dir'>;

export type Role = 'web' | 'background';

/** One line of the server's log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface ClusterOptions {
  /** Web workers; 2 when absent. */
  readonly workers?: number;
  /** Further options in config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** A folder that was set up before, with its keys; a new one is made when absent, and removed by `stop`. */
  readonly folder?: Folder;
  /** The port; 0, one that the system chooses, when absent. */
  readonly port?: number;
  /** Environment variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** The file of another build of the program. */
  readonly program?: string | undefined;
}

/** A folder of config.json and data. */
export interface Folder {
  readonly dir: string;
  readonly keys: Keys;
}

/** A running server: real processes of the built program. */
export interface Cluster {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  readonly keys: Keys;
  readonly primary: ChildProcess;
  /** Milliseconds from spawn to ready. */
  readonly startMs: number;
  /** Pids of the worker processes that run now. */
  pids(role: Role): number[];
  /** The log so far. */
  log(): LogLine[];
  /** Resolves with the first line, of those there are and those to come, that `matches`. */
  logged(matches: (line: LogLine) => boolean): Promise<LogLine>;
  /** Sends a signal to the primary. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the primary has ended. */
  readonly ended: Promise<Ended>;
  /** Drains, waits for the end and removes the folder, if it was made for this. */
  stop(): Promise<Ended>;
  /**
   * As `stop`, but kills all processes, in a fifth of the time: for the end of tests that are not about how a server
   * stops.
   */
  kill(): Promise<void>;
}

/** Runs one command of the program to its end. */
export function collab(...args: string[]): Promise<Ended> {
  return endOf(spawn(process.execPath, [COLLAB, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }), 'close');
}

/**
 * Makes a folder of a new server under the system's folder for temporary files, with the keys that all of them have
 * (`newFolder`), or by `init` itself: with keys of its own and without code caches. `dataDir` must be absolute.
 */
export async function initFolder(
  config: Readonly<Record<string, unknown>> & { readonly dataDir?: string } = {},
  { own = false } = {},
): Promise<Folder> {
  const dir = mkdtempSync(join(tmpdir(), 'collab-test-'));
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 }, ...config }));
  return { dir, keys: await (own ? init(dir) : newFolder(dir, config.dataDir)) };
}

/**
 * Starts a cluster and waits until it is ready.
 *
 * @throws when it ends before that, with what it said
 */
export async function startCluster({
  workers = 2,
  config = {},
  folder,
  port = 0,
  env = {},
  program = COLLAB,
}: ClusterOptions = {}): Promise<Cluster> {
  const { dir, keys } = folder ?? (await initFolder(config));
  const startedAt = performance.now();
  const args = [program, 'start', '--dir', dir, '--port', String(port), '--workers', String(workers)];
  const primary = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const lines = new Lines(primary);
  // Not 'close': workers that outlive it would hold its output open.
  const ended = endOf(primary, 'exit');
  const early = ended.then(({ code, stdout, stderr }) => {
    throw new Error(`the server ended before it was ready (${code}): ${stdout}${stderr}`);
  });
  const ready = await Promise.race([lines.first((line) => line['msg'] === 'ready'), early]);
  early.catch(() => {});
  return {
    url: String(ready['url']),
    port: Number(ready['port']),
    dir,
    keys,
    primary,
    startMs: performance.now() - startedAt,
    pids: (role) => workersOf(primary.pid ?? 0, role),
    log: () => [...lines.all],
    logged: (matches) => lines.first(matches),
    signal: (signal) => void primary.kill(signal),
    ended,
    stop: async () => {
      primary.kill('SIGTERM');
      const end = await ended;
      if (folder === undefined) rmSync(dir, { recursive: true, force: true });
      return end;
    },
    kill: async () => {
      const workers = childrenOf(primary.pid ?? 0);
      primary.kill('SIGKILL');
      await ended;
      // The guard of the primary kills them.
      await until(() => !workers.some(isRunning));
      if (folder === undefined) rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * A free port that the system gives to nobody by itself. For servers that are killed and started again while clients
 * try to connect: from the system's own range, such a client can be given the very port that it tries, and connect to
 * itself.
 */
export const stablePort = (): Promise<number> => findFreePort('127.0.0.1', 0, 0);

/** Whether a process with this pid runs; one that has ended and waits for its parent doesn't. */
export function isRunning(pid: number): boolean {
  const state = stateOf(pid);
  return state !== null && state !== 'Z';
}

/**
 * Resolves when `check` holds; looks more and more rarely: at least every 50 ms in the first second, and every 200 ms
 * after four. Rejects after `withinMs`.
 */
export async function until(check: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const begun = performance.now();
  const longest = (): number => Math.min(200, Math.max(50, (performance.now() - begun) / 20));
  for (let pauseMs = 2; !(await check()); pauseMs = Math.min(longest(), pauseMs * 1.2)) {
    if (performance.now() > begun + withinMs) throw new Error(`not so within ${withinMs} ms: ${String(check)}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

function endOf(child: ChildProcess, event: 'exit' | 'close'): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr?.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((resolve) =>
    child.once(event, (code: number | null, signal: string | null) => resolve({ code, signal, stdout, stderr })),
  );
}

/** The lines of log among what a process prints. */
class Lines {
  readonly all: LogLine[] = [];
  readonly #waiting = new Set<(line: LogLine) => void>();
  #rest = '';

  constructor(child: ChildProcess) {
    child.stdout?.on('data', (data: Buffer) => this.#take(data.toString()));
  }

  first(matches: (line: LogLine) => boolean): Promise<LogLine> {
    const found = this.all.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve) => {
      const look = (line: LogLine): void => {
        if (!matches(line)) return;
        this.#waiting.delete(look);
        resolve(line);
      };
      this.#waiting.add(look);
    });
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('{"level"')) continue;
      const parsed = JSON.parse(line) as LogLine;
      this.all.push(parsed);
      for (const look of this.#waiting) look(parsed);
    }
  }
}

/** Pids of the worker processes of a primary that run now. */
export function workersOf(parent: number, role: Role): number[] {
  return childrenOf(parent).filter((pid) => isRunning(pid) && roleOf(pid) === role);
}

/** Pids of the children of a process, also of those that have ended and are not yet waited for. */
function childrenOf(parent: number): number[] {
  try {
    // Each thread has those that it has started.
    const threads = readdirSync(`/proc/${parent}/task`);
    const lists = threads.map((thread) => readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8'));
    return lists.flatMap((list) =>
      list
        .split(' ')
        .filter((pid) => pid !== '')
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** The state of a process, a letter as in proc(5); null for one that there is not. */
function stateOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch {
    return null;
  }
}

function roleOf(pid: number): string | undefined {
  try {
    return /(?:^|\0)COLLAB_ROLE=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}
