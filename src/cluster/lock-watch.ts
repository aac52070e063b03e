import { processInfo } from '../lib/process/process-info.ts';
import { readProcessStat } from '../lib/process/process-stat.ts';
import type { Logger } from '../observability/log.ts';
import type { LockHolders } from '../ports/lock-holders.ts';

/** How often the locks are checked. */
const CHECK_MS = 1_000;

/** Options of a watch. */
export interface LockWatchOptions {
  /** Milliseconds for which a process must have been seen stopped with a lock; 0 for never. */
  readonly timeoutMs: number;
  /** Milliseconds by a monotonic clock. */
  readonly now: () => number;
  readonly log: Logger;
  readonly holders: LockHolders;
  /** Called when a process was killed. */
  readonly onKilled: () => void;
}

/**
 * Kills processes of this machine that are stopped (SIGSTOP, Ctrl-Z) while they hold a lock of the store, such as a command of
 * the command line: no write succeeds until they end (docs/decisions/0020-hung-workers.md). The watchdog does the same for workers.
 */
export class LockWatch {
  readonly #options: LockWatchOptions;
  /** By lock and process: when it was first seen stopped with the lock, at every check since. */
  #stoppedSince = new Map<string, number>();

  constructor(options: LockWatchOptions) {
    this.#options = options;
  }

  /** Checks the locks every second; does not keep the process alive. Returns a function that stops it. */
  start(): () => void {
    if (this.#options.timeoutMs === 0) return () => {};
    const timer = setInterval(() => this.check(), CHECK_MS).unref();
    return () => clearInterval(timer);
  }

  /** Checks the locks once. Called by the timer, and by tests. */
  check(): void {
    const { timeoutMs, now, holders, log, onKilled } = this.#options;
    const stoppedSince = new Map<string, number>();
    for (const holder of holders.find()) {
      const { pid, file } = holder;
      const stat = readProcessStat(pid);
      if (stat?.state !== 'T' || stat.parent === process.pid) continue;
      const key = `${file} ${pid} ${stat.startTime}`;
      const since = this.#stoppedSince.get(key) ?? now();
      stoppedSince.set(key, since);
      const stoppedMs = now() - since;
      if (stoppedMs < timeoutMs) continue;
      const { command } = processInfo(pid);
      if (!holders.kill(holder)) continue;
      onKilled();
      log.error({ pid, command, lock: file, stoppedSeconds: Math.round(stoppedMs / 1_000) }, 'a process that was stopped kept a lock of the store, so that no write succeeded: it has been killed');
    }
    this.#stoppedSince = stoppedSince;
  }
}
