import type { Logger } from '../observability/log.ts';
import { type HookName, readRunningHooks } from '../observability/running-hooks.ts';
import { type ProcessStat, readProcessStat } from '../lib/process/process-stat.ts';
import type { Worker } from './worker.ts';

/** How often the primary pings each worker and checks for the answers. */
export const PING_MS = 1_000;
/** How long a starting worker may block: opening the store waits up to 30 s for the commits of other processes. */
const START_MS = 60_000;
/**
 * A worker that waits for a processor is not hung, and killing it would add to the load: only the processor time that
 * it gets counts then. One that is silent for this many times the limit is killed all the same.
 */
const LONGEST_WAIT = 6;
/** Milliseconds of a clock tick in /proc: USER_HZ is 100 on every architecture that Node supports. */
const TICK_MS = 10;
/** Checks to skip after a kill: a worker that waited for a lock of the killed one can answer meanwhile. */
const CHECKS_BETWEEN_KILLS = 2;

/**
 * How long a worker may be silent until it is woken, and then at each check, in milliseconds: the release of a lock that
 * its main thread waits for may have passed it by.
 */
const WAKE_MS = 2_000;

/** Options of a watchdog. */
export interface WatchdogOptions {
  /** Milliseconds without an answer after which a worker that is ready is killed; 0 for never. */
  readonly timeoutMs: number;
  /** Milliseconds by a monotonic clock. */
  readonly now: () => number;
  readonly log: Logger;
  /** By default /proc is read. */
  readonly statOf?: (pid: number) => Pick<ProcessStat, 'state' | 'cpuTicks'> | null;
  /** Called with each hook of a plugin that a killed worker was running. */
  readonly onHungHook?: (hook: HookName) => void;
}

/** The state of one worker. */
interface Watched {
  readonly worker: Worker;
  /** Whether a ping has not been answered yet. */
  unanswered: boolean;
  /** For how long, in milliseconds of the primary's running time. */
  silentMs: number;
  /** How much of that it could have answered in: without the time in which it waited for a processor. */
  blockedMs: number;
  /** Its processor time at the last check, if it was silent then. */
  cpuTicks: number | null;
}

/**
 * Kills workers that do not answer pings, from their fork to their end; the supervisor then replaces them.
 *
 * Only time in which the primary itself ran counts, so no worker is overdue after the whole process group was stopped
 * or the machine was asleep.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #watched = new Set<Watched>();
  #lastCheck: number;
  #checksToSkip = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#lastCheck = options.now();
  }

  /** Watches a worker until it ends. */
  watch(worker: Worker): void {
    const watched: Watched = { worker, unanswered: false, silentMs: 0, blockedMs: 0, cpuTicks: null };
    this.#watched.add(watched);
    worker.channel.onMessage((message) => {
      if (message.type !== 'pong') return;
      watched.unanswered = false;
      watched.silentMs = watched.blockedMs = 0;
      watched.cpuTicks = null;
    });
    void worker.ended.then(() => this.#watched.delete(watched));
  }

  /** Checks all workers every second; does not keep the process alive. Returns a function that stops it. */
  start(): () => void {
    if (this.#options.timeoutMs === 0) return () => {};
    const timer = setInterval(() => this.check(), PING_MS).unref();
    return () => clearInterval(timer);
  }

  /** Pings the workers that have answered, and kills those that are overdue. Called by the timer, and by tests. */
  check(): void {
    const now = this.#options.now();
    const passed = Math.min(now - this.#lastCheck, PING_MS);
    this.#lastCheck = now;
    for (const watched of this.#watched) {
      if (watched.unanswered) {
        this.#addSilence(watched, passed);
        if (watched.silentMs >= WAKE_MS) watched.worker.wake();
      } else {
        watched.unanswered = true;
        watched.worker.channel.send({ type: 'ping', data: {} });
      }
    }
    this.#killOverdue();
  }

  /**
   * A worker that hangs inside a transaction makes healthy workers wait for its lock, so those are overdue too. Workers
   * stopped by a signal are all killed at once. Otherwise only the one that was silent for longest is killed, and the
   * others get two more seconds.
   */
  #killOverdue(): void {
    if (this.#checksToSkip > 0) {
      this.#checksToSkip--;
      return;
    }
    const overdue = [...this.#watched].filter((watched) => !watched.worker.isKilled && this.#isOverdue(watched));
    const stopped = overdue.filter(({ worker }) => this.#statOf(worker)?.state === 'T');
    const longest = overdue.toSorted((a, b) => b.blockedMs - a.blockedMs).slice(0, 1);
    const chosen = stopped.length > 0 ? stopped : longest;
    for (const watched of chosen) this.#kill(watched, stopped.includes(watched));
    if (chosen.length > 0) this.#checksToSkip = CHECKS_BETWEEN_KILLS;
  }

  #addSilence(watched: Watched, passed: number): void {
    const stat = this.#statOf(watched.worker);
    const waits = stat?.state === 'R' && watched.cpuTicks !== null;
    const ranMs = waits ? (stat.cpuTicks - (watched.cpuTicks ?? 0)) * TICK_MS : passed;
    watched.cpuTicks = stat?.cpuTicks ?? null;
    watched.silentMs += passed;
    watched.blockedMs += Math.min(passed, ranMs);
  }

  #statOf({ pid }: Worker): Pick<ProcessStat, 'state' | 'cpuTicks'> | null {
    return pid === undefined ? null : (this.#options.statOf ?? readProcessStat)(pid);
  }

  #isOverdue({ worker, silentMs, blockedMs }: Watched): boolean {
    const limit = this.#limitOf(worker);
    return blockedMs >= limit || silentMs >= LONGEST_WAIT * limit;
  }

  #limitOf(worker: Worker): number {
    return worker.isReady ? this.#options.timeoutMs : Math.max(START_MS, this.#options.timeoutMs);
  }

  #kill({ worker, silentMs }: Watched, stopped: boolean): void {
    const seconds = Math.round(silentMs / 1_000);
    const hooks = stopped ? [] : readRunningHooks(worker.pid);
    const cause = stopped ? 'it was stopped by a signal (SIGSTOP)' : `its event loop was blocked${whileRunning(hooks)}`;
    const next = worker.isDraining ? 'it was draining' : 'a new worker replaces it';
    for (const hook of hooks) this.#options.onHungHook?.(hook);
    this.#options.log.error(
      {
        hung: worker.id,
        workerPid: worker.pid,
        silentMs,
        stopped,
        ...hooks[0],
        ...(hooks.length > 1 ? { hooks } : {}),
      },
      `worker ${worker.id} has not answered the primary for ${seconds} s and is killed (SIGKILL): ${cause}; ${next}`,
    );
    worker.killHung(`it did not answer the primary for ${seconds} s`);
  }
}

/** Names the hooks of plugins that run in a blocked process: one of them may be an endless loop. */
function whileRunning(hooks: readonly HookName[]): string {
  if (hooks.length === 0) return '';
  const names = hooks.map(({ plugin, hook }) => `${hook} of the plugin ${plugin}`);
  return ` while ${names.join(' and ')} ran (with "isolation": "worker", a plugin cannot block it)`;
}
