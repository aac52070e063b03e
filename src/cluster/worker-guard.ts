import { type ChildProcess, spawn } from 'node:child_process';
import type { WorkerProcess } from './worker.ts';

/**
 * Keeps the pids of running workers, from lines `+ pid` and `- pid`, and kills them when its input ends. The signals
 * that a terminal or service manager sends to every process of a service are for the primary.
 */
const SCRIPT = `trap '' HUP INT TERM QUIT
pids=
while read -r sign pid; do
  left=
  for known in $pids; do [ "$known" = "$pid" ] || left="$left $known"; done
  pids=$left
  [ "$sign" = - ] || pids="$pids $pid"
done
[ -z "$pids" ] || kill -KILL $pids`;

/**
 * Kills workers that outlive this process (SIGKILL). A worker kills itself when the channel to the primary closes, but
 * not while its main thread is blocked, such as by a lock of the store that it then keeps. The kernel ends the input of
 * the guard, a process of its own, when this process ends, however that happens. A shell, because it needs less than a
 * megabyte.
 *
 * On a system without /bin/sh the workers are not guarded.
 */
export class WorkerGuard {
  #guard: ChildProcess | null = null;

  /** Watches a worker until it ends. Returns it. */
  watch(worker: WorkerProcess): WorkerProcess {
    const { pid, ended } = worker;
    if (pid === undefined || process.platform === 'win32') return worker;
    this.#guard ??= startGuard();
    this.#write(`+ ${pid}\n`);
    void ended.then(() => this.#write(`- ${pid}\n`));
    return worker;
  }

  #write(line: string): void {
    this.#guard?.stdin?.write(line);
  }
}

/** Starts the guard, which does not keep this process alive. */
function startGuard(): ChildProcess {
  // A group of its own, so that it is there when the group of this process is killed.
  const guard = spawn('/bin/sh', ['-c', SCRIPT, 'collab-worker-guard'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
    env: {},
  });
  // Without a shell, or after somebody has killed it, workers are left to themselves.
  guard.on('error', () => {});
  guard.stdin?.on('error', () => {});
  guard.unref();
  (guard.stdin as { unref?: () => void } | null)?.unref?.();
  return guard;
}
