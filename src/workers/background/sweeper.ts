import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';

/** A task that is repeated at an interval. */
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

/** How often the sweeper checks which sweeps are due. */
const CHECK_MS = 250;

/**
 * Runs sweeps when they are due, independently of each other. A sweep that fails is logged and runs again at its next
 * time. A sweep that is still running is not started again. Neither delays the others.
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

  /** Runs due sweeps, checking four times a second, until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => this.runDue(), CHECK_MS);
  }

  /** Starts the sweeps that are due and not running. */
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

  /** Starts no more sweeps. Resolves once the running ones are done. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.idle();
  }

  /** Resolves once the sweeps that are running now are done. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(job: Job): Promise<void> {
    job.running = true;
    try {
      await job.sweep.run();
    } catch (error) {
      this.#log.error(
        { err: error, sweep: job.sweep.name },
        'a periodic task (sweep) failed; it will run again at its next time',
      );
    } finally {
      job.running = false;
    }
  }
}
