import {
  type Job,
  type NewJob,
  Permanent,
  type PluginEnvironment,
  type Queue,
  type QueueOptions,
  RetryAfter,
} from '../../src/plugins/api.ts';
import type { Clock } from '../../src/lib/clock.ts';

interface Stored {
  job: Job;
  readonly group: string;
}

/** Runs one attempt of a job. */
export type RunJob = (job: Job, attempt: number) => Promise<void>;

/**
 * A queue of one environment in memory. Jobs run only by `runDue`, at the time of the given clock, and delays have no
 * jitter.
 */
export class MemoryQueue implements Queue {
  readonly #jobs = new Map<string, Stored>();
  readonly #clock: Clock;
  readonly #run: RunJob;
  readonly #options: QueueOptions;

  constructor(clock: Clock, run: RunJob, options: QueueOptions) {
    this.#clock = clock;
    this.#run = run;
    this.#options = options;
  }

  async add(_environment: PluginEnvironment, jobs: readonly NewJob[]): Promise<void> {
    await Promise.resolve();
    for (const { id, payload, delayMs = 0, group = '' } of jobs) {
      if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(id)) throw new Error(`not the id of a job: ${id}`);
      if (this.#jobs.has(id)) continue;
      const job: Job = {
        id,
        payload: structuredClone(payload),
        attempts: 0,
        state: 'waiting',
        createdAt: this.#time(0),
        dueAt: this.#time(delayMs),
        lastError: null,
      };
      this.#jobs.set(id, { job, group });
    }
  }

  get(_environment: PluginEnvironment, id: string): Promise<Job | undefined> {
    return Promise.resolve(this.#jobs.get(id)?.job);
  }

  async remove(_environment: PluginEnvironment, id: string): Promise<void> {
    await Promise.resolve();
    this.#jobs.delete(id);
  }

  retry(_environment: PluginEnvironment, id: string): Promise<boolean> {
    const stored = this.#jobs.get(id);
    if (stored !== undefined) stored.job = { ...stored.job, state: 'waiting', attempts: 0, dueAt: this.#time(0) };
    return Promise.resolve(stored !== undefined);
  }

  list(
    _environment: PluginEnvironment,
    { state, after, limit = 100 }: { state: Job['state']; after?: string; limit?: number },
  ): Promise<readonly Job[]> {
    const jobs = this.#inOrder().filter((job) => job.state === state);
    const from = after === undefined ? 0 : jobs.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && from === 0)
      return Promise.reject(new Error(`there is no ${state} job ${after} to continue after`));
    return Promise.resolve(jobs.slice(from, from + limit));
  }

  count(): Promise<Record<Job['state'], number>> {
    const jobs = this.#inOrder();
    const waiting = jobs.filter(({ state }) => state === 'waiting').length;
    return Promise.resolve({ waiting, dead: jobs.length - waiting });
  }

  /** Runs the jobs that are due: groups side by side, the jobs of a group one after the other. */
  async runDue(): Promise<void> {
    const now = this.#time(0);
    const due = [...this.#jobs.values()].filter(({ job }) => job.state === 'waiting' && job.dueAt <= now);
    await Promise.all(
      [...new Set(due.map(({ group }) => group))].map(async (name) => {
        for (const stored of due) if (stored.group === name) await this.#attempt(stored);
      }),
    );
  }

  async #attempt(stored: Stored): Promise<void> {
    const attempts = stored.job.attempts + 1;
    try {
      await this.#run(stored.job, attempts);
      this.#jobs.delete(stored.job.id);
    } catch (error) {
      const lastError = error instanceof Error ? error.message : String(error);
      const delay = error instanceof Permanent ? undefined : this.#options.retryDelaysMs[attempts - 1];
      const wait = error instanceof RetryAfter ? error.ms : delay;
      const state = delay === undefined ? 'dead' : 'waiting';
      stored.job = {
        ...stored.job,
        attempts,
        state,
        lastError,
        dueAt: this.#time(delay === undefined ? 0 : (wait ?? 0)),
      };
    }
  }

  #inOrder(): Job[] {
    return [...this.#jobs.values()].map(({ job }) => job).toSorted((a, b) => a.dueAt.localeCompare(b.dueAt));
  }

  #time(delayMs: number): string {
    return new Date(this.#clock.now() + delayMs).toISOString();
  }
}
