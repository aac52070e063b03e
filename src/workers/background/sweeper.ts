import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';

/** Something to be done again and again. */
export interface Sweep {
  readonly name: string;
  readonly everyMs: number;
  readonly run: () => Promise<void> | void;
}

interface Job {
  readonly sweep: Sweep;
  dueAt: number;
  running: boolean;
}

/** Shortest time between two looks at what is due. */
const LOOK_MS = 250;

/**
 * Runs sweeps when they are due, each by itself: one that fails is logged and runs again at its next time, one that
 * takes long is not started twice, and neither holds the others up.
 */
export class Sweeper {
  readonly #jobs: readonly Job[];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;

  constructor(sweeps: readonly Sweep[], { clock, log }: { clock: Clock; log: Logger }) {
    this.#clock = clock;
    this.#log = log;
    this.#jobs = sweeps.map((sweep) => ({ sweep, dueAt: clock.monotonic() + sweep.everyMs, running: false }));
  }

  /** Looks at what is due four times a second, until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => this.runDue(), LOOK_MS);
  }

  /** Starts what is due now and not running. */
  runDue(): void {
    const now = this.#clock.monotonic();
    for (const job of this.#jobs) {
      if (job.running || now < job.dueAt) continue;
      job.dueAt = now + job.sweep.everyMs;
      const run = this.#run(job);
      this.#running.add(run);
      void run.finally(() => this.#running.delete(run));
    }
  }

  /** Starts nothing more. Resolves when what runs is done. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.settled();
  }

  /** Resolves when what runs now is done. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(job: Job): Promise<void> {
    job.running = true;
    try {
      await job.sweep.run();
    } catch (error) {
      this.#log.error({ err: error, sweep: job.sweep.name }, 'a sweep failed; it runs again at its next time');
    } finally {
      job.running = false;
    }
  }
}
