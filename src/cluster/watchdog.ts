import type { Logger } from '../observability/log.ts';
import { isStopped } from '../lib/process-stat.ts';
import type { Worker } from './worker.ts';

/** How often the primary pings each worker and looks for the answers. */
export const PING_MS = 1_000;
/** A worker that starts may block for this long: opening the store waits up to 30 s for the commits of other processes. */
const START_MS = 60_000;
/** Looks after a kill before the next: a worker that waited for a lock of the killed one answers meanwhile. */
const LOOKS_BETWEEN_KILLS = 2;

export interface WatchdogOptions {
  /** Milliseconds without an answer after which a worker that serves is killed; 0 for never. */
  readonly timeoutMs: number;
  /** Milliseconds by a monotonic clock. */
  readonly now: () => number;
  readonly log: Logger;
  /** Whether a process has been stopped by a signal; absent: as the system says. */
  readonly isStopped?: (pid: number | undefined) => boolean;
}

/** What is known of one worker. */
interface Watched {
  readonly worker: Worker;
  /** A ping is under way. */
  unanswered: boolean;
  /** For how long, in milliseconds of the primary's own running time. */
  silentMs: number;
}

/**
 * Kills workers that do not answer pings, from their fork to their end; the supervisor replaces what has ended.
 *
 * Only time in which the primary itself ran counts: after the whole group was stopped, or the machine slept, nobody is late.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #watched = new Set<Watched>();
  #lastLook: number;
  #looksToWait = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#lastLook = options.now();
  }

  /** Watches a worker until it ends. */
  watch(worker: Worker): void {
    const watched: Watched = { worker, unanswered: false, silentMs: 0 };
    this.#watched.add(watched);
    worker.channel.onMessage((message) => {
      if (message.type !== 'pong') return;
      watched.unanswered = false;
      watched.silentMs = 0;
    });
    void worker.ended.then(() => this.#watched.delete(watched));
  }

  /** Looks at all workers every second; does not keep the process alive. Returns the way to stop. */
  start(): () => void {
    if (this.#options.timeoutMs === 0) return () => {};
    const timer = setInterval(() => this.look(), PING_MS).unref();
    return () => clearInterval(timer);
  }

  /** Pings those that have answered, and kills those that are overdue. Tests call it as the timer does. */
  look(): void {
    const now = this.#options.now();
    const passed = Math.min(now - this.#lastLook, PING_MS);
    this.#lastLook = now;
    for (const watched of this.#watched) {
      if (watched.unanswered) watched.silentMs += passed;
      else {
        watched.unanswered = true;
        watched.worker.channel.send({ type: 'ping', data: {} });
      }
    }
    this.#killOverdue();
  }

  /**
   * A worker that hangs inside a transaction makes others wait for its lock, so they are late too although nothing is
   * wrong with them. Stopped ones are killed at once, all of them; of others the one that has been silent for longest, and
   * the rest get two more seconds.
   */
  #killOverdue(): void {
    if (this.#looksToWait > 0) {
      this.#looksToWait--;
      return;
    }
    const overdue = [...this.#watched].filter(({ worker, silentMs }) => !worker.isKilled && silentMs >= this.#limitOf(worker));
    const stopped = overdue.filter(({ worker }) => (this.#options.isStopped ?? isStopped)(worker.pid));
    const longest = overdue.toSorted((a, b) => b.silentMs - a.silentMs).slice(0, 1);
    const chosen = stopped.length > 0 ? stopped : longest;
    for (const watched of chosen) this.#kill(watched, stopped.includes(watched));
    if (chosen.length > 0) this.#looksToWait = LOOKS_BETWEEN_KILLS;
  }

  #limitOf(worker: Worker): number {
    return worker.isReady ? this.#options.timeoutMs : Math.max(START_MS, this.#options.timeoutMs);
  }

  #kill({ worker, silentMs }: Watched, stopped: boolean): void {
    const seconds = Math.round(silentMs / 1_000);
    const cause = stopped ? 'a signal had stopped it' : 'its event loop was blocked';
    const next = worker.isDraining ? 'it was draining' : 'another one replaces it';
    this.#options.log.error(
      { hung: worker.id, workerPid: worker.pid, silentMs, stopped },
      `worker ${worker.id} has not answered the primary for ${seconds} s and is killed (SIGKILL): ${cause}; ${next}`,
    );
    worker.killHung(`it did not answer the primary for ${seconds} s`);
  }
}
