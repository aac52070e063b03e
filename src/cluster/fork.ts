import cluster from 'node:cluster';
import type { StdioOptions } from 'node:child_process';
import { WAKE_SIGNAL } from '../lib/process/lost-wake-ups.ts';
import type { LogOutput } from '../observability/log.ts';
import { parentChannel } from './channel.ts';
import { StartError } from './exit.ts';
import type { Role } from './messages.ts';
import { ROLE_VARIABLE } from './role.ts';
import type { WorkerEnd, WorkerProcess } from './worker.ts';

/** The environment variable with the path of the code cache of a worker process. */
const CODE_CACHE_VARIABLE = 'COLLAB_CODE_CACHE';

/**
 * The largest semi-space of a worker in megabytes; the heap for new objects has up to three. By default V8 lets it grow
 * to 48 MB in a burst and never shrinks it.
 *
 * `local`: with a store in the folder. A server with 3 000 idle sockets needs 20 MB less than by default.
 * `remote`: on engines of other machines. Requests wait for them, so more objects are alive when garbage is collected,
 * and each collection copies them: with 16 MB a comment on PostgreSQL takes an eighth less processor time than with 4, in
 * pairs of runs, and a node with one web worker 15 MB more memory.
 */
export const SEMI_SPACE_MB = { local: 4, remote: 16 } as const;

/**
 * Options of V8 that save memory. Options that the operator sets come later and override these.
 *
 * Of the four threads on which V8 compiles and collects garbage beside JavaScript, each keeps one to three megabytes
 * that it once needed. There is a worker per core, so one such thread in each is enough: requests and starts are as
 * fast with it.
 */
const V8_OPTIONS = ['--v8-pool-size=1'];

/** After a process has exited, messages still in its channel are awaited for this long at most. */
const FINAL_MESSAGES_MS = 1_000;

// Workers accept connections themselves from the listen socket of this process. If this process passed them on, those
// on their way to a worker that is killed would stay open without an answer: Node releases a connection only when the
// worker confirms it.
cluster.schedulingPolicy = cluster.SCHED_NONE;

/** How `forkWorker` starts a worker. */
export interface ForkOptions {
  /** The file that it runs. */
  readonly entry: string;
  readonly role: Role;
  /** The file descriptor of this process that becomes the worker's standard output, for its log. */
  readonly output: LogOutput;
  /** Path of its code cache (code-cache.ts). */
  readonly codeCache: string;
  /** Megabytes, of `SEMI_SPACE_MB`. */
  readonly semiSpaceMb: number;
}

/**
 * Starts a worker process, which ends when this process does. Workers on the core of Node.js share the listen socket of
 * this process (decision 52).
 *
 * @throws {StartError} if this process is itself a worker of a cluster
 */
export function forkWorker({ entry, role, output, codeCache, semiSpaceMb }: ForkOptions): WorkerProcess {
  if (!cluster.isPrimary)
    throw new StartError(
      'The server was started as a worker of a Node.js cluster, such as the cluster mode of PM2: start it as a process of its own.',
    );
  const stdio: StdioOptions = ['inherit', output, 'inherit', 'ipc'];
  const execArgv = [`--max-semi-space-size=${semiSpaceMb}`, ...V8_OPTIONS, ...process.execArgv];
  cluster.setupPrimary({ exec: entry, args: [], execArgv, stdio });
  const worker = cluster.fork({ [ROLE_VARIABLE]: role, [CODE_CACHE_VARIABLE]: codeCache });
  const child = worker.process;
  // Reported by the process, too; without a listener it would be thrown.
  worker.on('error', () => {});
  const channel = parentChannel(child);
  const ended = new Promise<WorkerEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      channel.onClose(() => resolve({ code, signal }));
      setTimeout(resolve, FINAL_MESSAGES_MS, { code, signal }).unref();
    });
    // Without a pid the fork itself failed, and 'exit' will not follow.
    child.on('error', () => child.pid === undefined && resolve({ code: null, signal: null }));
  });
  return {
    pid: child.pid,
    channel,
    ended,
    kill: () => child.kill('SIGKILL'),
    // Windows has no such signal, and no locks that need it.
    wake: () => process.platform !== 'win32' && child.kill(WAKE_SIGNAL),
  };
}
