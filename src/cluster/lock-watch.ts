import { processInfo, wasStartedWith } from '../lib/process/process-info.ts';
import { isDescendant, readProcessStat } from '../lib/process/process-stat.ts';
import type { Logger } from '../observability/log.ts';
import type { LockHolders } from '../ports/store-operations.ts';
import { ROLE_VARIABLE } from './role.ts';

/** How often the locks are checked. */
const CHECK_MS = 1_000;

/** Options of a watch. */
export interface LockWatchOptions {
  /** Milliseconds for which a process must have been seen with a lock; 0 for never. */
  readonly timeoutMs: number;
  /** Milliseconds by a monotonic clock. */
  readonly now: () => number;
  readonly log: Logger;
  readonly holders: LockHolders;
  /** Called when a process was killed. */
  readonly onKilled: () => void;
}

/** Why a holder of a lock is killed. */
const REASONS = {
  stopped: 'a process that was stopped kept a lock of the store, so that no write succeeded: it has been killed',
  orphan:
    'a worker of a server that has ended kept a lock of the store, so that no write succeeded: it has been killed',
} as const;

/**
 * Kills processes of this machine that hold a lock of the store and will not give it up, because they are stopped
 * (SIGSTOP, Ctrl-Z), such as a command of the command line, or are workers of a server that has ended: no write
 * succeeds until they end (docs/decisions/0020-hung-workers.md). The watchdog does the same for the workers of this
 * server.
 */
export class LockWatch {
  readonly #options: LockWatchOptions;
  /** By lock and process: when it was first seen so with the lock, at every check since. */
  #heldSince = new Map<string, number>();

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
    const heldSince = new Map<string, number>();
    for (const holder of holders.find()) {
      const { pid, file } = holder;
      const stat = readProcessStat(pid);
      if (stat === null || stat.parent === process.pid) continue;
      const reason = reasonToKill(pid, stat.state);
      if (reason === null) continue;
      const key = `${file} ${pid} ${stat.startTime}`;
      const since = this.#heldSince.get(key) ?? now();
      heldSince.set(key, since);
      const heldMs = now() - since;
      if (heldMs < timeoutMs) continue;
      const { command } = processInfo(pid);
      if (!holders.kill(holder)) continue;
      onKilled();
      log.error({ pid, command, lock: file, heldSeconds: Math.round(heldMs / 1_000) }, REASONS[reason]);
    }
    this.#heldSince = heldSince;
  }
}

/** Null for a process that can be expected to give up its lock. */
function reasonToKill(pid: number, state: string): keyof typeof REASONS | null {
  if (state === 'T') return 'stopped';
  // Since this process has the lock of the data folder, no other server has workers there. A plugin may have started
  // commands.
  return wasStartedWith(pid, ROLE_VARIABLE) && !isDescendant(pid) ? 'orphan' : null;
}
