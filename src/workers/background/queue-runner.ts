import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import { endAttempt, type FailedAttempt, leaseJobs, makeDueEarlier } from '../../domain/plugins/job-attempts.ts';
import type { QueueAddress, StoredJob } from '../../domain/plugins/job.ts';
import { type JobGroup, jobGroups, nextJobs } from '../../domain/plugins/jobs.ts';
import { clockOffset, timestamp } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { CollabError, isStoreError } from '../../model/errors.ts';
import type { PluginEnvironment, QueueOptions } from '../../plugins/api.ts';
import type { HookMeter } from '../../plugins/hook-meter.ts';
import { type JobStarter, publicJob, type Reservation } from '../../plugins/services/local-services.ts';
import { PluginThreadEndedError, type PluginThread } from '../../plugins/thread/plugin-thread.ts';
import { settingsIn } from '../../plugins/loading/settings.ts';
import type { PluginInfo } from '../../plugins/thread/messages.ts';

/** Jobs of one group that are begun with one commit. */
const LEASE_BATCH = 16;
/**
 * Milliseconds before the next round if jobs were added or have ended during a round. A round costs a read of the queue and a
 * commit, and so serves more jobs.
 */
const COLLECT_MS = 10;
/** How long an attempt may take beyond its deadline until its end is on disk, in milliseconds. */
const LEASE_MARGIN_MS = 10_000;
const MAX_RETRY_AFTER_MS = 7 * 24 * 3_600_000;
const JITTER = 0.1;
/** How long a job waits after the store has refused a write of it, in milliseconds. */
const STORE_RETRY_MS = 1_000;
/** How long no further failed job of the queue is logged as a warning after one was, in milliseconds. */
const WARN_MS = 60_000;
/** If the wall clock goes back by more than this between two polls, in milliseconds, it was set back; by less, it was corrected. */
const CLOCK_STEP_MS = 1_000;

/** Dependencies of a queue. */
export interface QueueRunnerDeps {
  readonly ctx: Context;
  readonly log: Logger;
  readonly info: PluginInfo;
  readonly thread: PluginThread;
  readonly meter: HookMeter;
}

/** Runs the due jobs of one queue of a plugin over all environments. Groups of jobs take turns. */
export class QueueRunner implements JobStarter {
  readonly #deps: QueueRunnerDeps;
  readonly #index: number;
  readonly #name: string;
  readonly #options: Required<QueueOptions>;
  /** Running jobs, and reserved places, by `<environmentId> <group>`. */
  readonly #running = new Map<string, number>();
  readonly #tasks = new Set<Promise<void>>();
  /** The running jobs, as `<environmentId> <id>`. */
  readonly #runningJobs = new Set<string>();
  /** Index of the group that was served last. */
  #groupIndex = 0;
  /**
   * The `dueAt` of the last job of each group, by `<environmentId> <group>`, that was begun since `pollAll`. The next ones are
   * read from there on: from the start, each read would pass over the keys of all jobs that were begun before and are still in
   * the base table.
   */
  readonly #begunUpTo = new Map<string, string>();
  #filling: Promise<void> | null = null;
  #again = false;
  /** Places that are kept for jobs which are being added. */
  #reserved = 0;
  /** Whether the last round began as many jobs as it could. */
  #isBehind = false;
  /** Whether jobs may be due that found no place in the last round: new ones wait their turn behind them. */
  #mayHaveDue = true;
  #stopped = false;
  /** Until when failed jobs are not logged as warnings, by the monotonic clock. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #clockOffset: number;

  /** @param index the place of the queue among those of the plugin */
  constructor(deps: QueueRunnerDeps, index: number) {
    const queue = deps.info.hooks.queues[index];
    if (queue === undefined) throw new Error(`the plugin has no queue ${index}`);
    this.#deps = deps;
    this.#index = index;
    this.#name = queue.name;
    this.#options = queue.options;
    this.#clockOffset = clockOffset(deps.ctx.clock);
  }

  /** Whether this runs the jobs of the queue. */
  isOf(plugin: string, queue: string): boolean {
    return this.#deps.info.name === plugin && this.#name === queue;
  }

  reserve({ id, slug }: PluginEnvironment, group: string): Reservation | null {
    const { name, settings } = this.#deps.info;
    const { enabled, config } = settingsIn(settings, slug);
    const key = `${id} ${group}`;
    if (this.#stopped || this.#mayHaveDue || !enabled || this.#free <= 0 || this.#runningOf(key) >= this.#options.groupConcurrency) return null;
    this.#reserved++;
    this.#count(key, 1);
    return {
      leaseMs: this.#options.timeoutMs + LEASE_MARGIN_MS,
      begin: (job) => {
        this.#reserved--;
        this.#run({ environmentId: id, plugin: name, queue: this.#name }, key, job, { environment: { id, slug }, config });
      },
      release: () => {
        this.#reserved--;
        this.#count(key, -1);
        if (this.#mayHaveDue) this.poll();
      },
    };
  }

  /** Starts the jobs that are due, also those with an earlier `dueAt` than the last one that was begun. Call it periodically. */
  pollAll(): void {
    this.#begunUpTo.clear();
    this.poll();
  }

  /** Starts the jobs that are due. Call it when jobs were added or retried. */
  poll(): void {
    this.#again = true;
    this.#filling ??= this.#fill().finally(() => (this.#filling = null));
  }

  /** Starts no more jobs. Resolves once the running ones have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#filling;
    await Promise.all(this.#tasks);
  }

  async #fill(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = this.#isBehind = false;
      try {
        await this.#startDue();
        if (this.#isBehind) this.#again = true;
        else if (this.#again) await delay(COLLECT_MS);
      } catch (error) {
        this.#deps.log.error({ err: error, plugin: this.#deps.info.name, queue: this.#name }, 'the jobs of a plugin could not be read; they are tried again');
      }
    }
  }

  /** One round over the groups, from the one after the last that was served. */
  async #startDue(): Promise<void> {
    const { ctx, info } = this.#deps;
    this.#mayHaveDue = false;
    const groups = (await jobGroups(ctx, `${info.name}~${this.#name}~`)).filter(({ counts }) => counts.waiting > 0);
    await this.#followClock(groups);
    // While several groups wait, none of them takes all places.
    const share = Math.max(1, Math.ceil(this.#options.concurrency / Math.max(1, groups.length)));
    for (let served = 0; served < groups.length && !this.#stopped; served++) {
      if (this.#free <= 0) {
        this.#mayHaveDue = true;
        return;
      }
      this.#groupIndex = (this.#groupIndex + 1) % groups.length;
      const group = groups[this.#groupIndex];
      if (group !== undefined) await this.#startGroup(group, share);
    }
  }

  /** Makes jobs due earlier if the wall clock was set back: otherwise they would wait as much longer. */
  async #followClock(groups: readonly JobGroup[]): Promise<void> {
    const { ctx, log, info } = this.#deps;
    const offset = clockOffset(ctx.clock);
    const setBackMs = Math.round(this.#clockOffset - offset);
    if (setBackMs > CLOCK_STEP_MS) {
      for (const group of groups) await makeDueEarlier(ctx, group, setBackMs, (id) => this.#isRunning(group, id));
      this.#begunUpTo.clear();
      log.warn({ plugin: info.name, queue: this.#name, setBackMs }, 'the clock was set back: waiting jobs of a plugin are due earlier by as much');
    }
    this.#clockOffset = offset;
  }

  get #free(): number {
    return this.#options.concurrency - this.#tasks.size - this.#reserved;
  }

  async #startGroup(group: JobGroup, share: number): Promise<void> {
    const { ctx, info } = this.#deps;
    const key = `${group.environmentId} ${group.group}`;
    const places = Math.min(this.#free, share, LEASE_BATCH, this.#options.groupConcurrency - this.#runningOf(key));
    if (places <= 0) {
      this.#mayHaveDue = true;
      return;
    }
    const now = timestamp(ctx.clock.now());
    // A job may run for longer than its lease: while its thread starts, or while others run alone.
    const due = (await nextJobs(ctx, group, LEASE_BATCH, this.#begunUpTo.get(key))).filter(({ id, dueAt }) => dueAt <= now && !this.#isRunning(group, id)).slice(0, places);
    if (due.length === 0) return;
    if (due.length === places) this.#mayHaveDue = true;
    const environment = await environmentById(ctx, group.environmentId).catch(nullIfDeleted);
    if (environment === null) return;
    const { enabled, config } = settingsIn(info.settings, environment.slug);
    if (!enabled) return;
    const leased = await leaseJobs(ctx, group, due.map(({ id }) => id), this.#options.timeoutMs + LEASE_MARGIN_MS);
    if (leased.length === places) this.#isBehind = true;
    const last = due.at(-1);
    if (last !== undefined) this.#begunUpTo.set(key, last.dueAt);
    for (const job of leased) {
      this.#count(key, 1);
      this.#run(group, key, job, { environment: { id: environment.id, slug: environment.slug }, config });
    }
  }

  #run(address: QueueAddress, key: string, job: StoredJob, context: object): void {
    const running = `${address.environmentId} ${job.id}`;
    this.#runningJobs.add(running);
    const task = this.#attempt(address, job, { ...context, attempt: job.attempts }).then((mayBeDue) => {
      this.#tasks.delete(task);
      this.#runningJobs.delete(running);
      this.#count(key, -1);
      if (!this.#stopped && (mayBeDue || this.#mayHaveDue)) this.poll();
    });
    this.#tasks.add(task);
  }

  #isRunning({ environmentId }: QueueAddress, id: string): boolean {
    return this.#runningJobs.has(`${environmentId} ${id}`);
  }

  #runningOf(key: string): number {
    return this.#running.get(key) ?? 0;
  }

  #count(key: string, change: 1 | -1): void {
    const running = this.#runningOf(key) + change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }

  /** Whether a failure is logged as a warning: one per minute, since thousands of jobs can fail for one reason. */
  #mayWarn(): boolean {
    const now = this.#deps.ctx.clock.monotonic();
    if (now < this.#quietUntil) return false;
    this.#quietUntil = now + WARN_MS;
    return true;
  }

  /** Runs an attempt, stores its end, and returns whether the job may be due again. Never rejects: what cannot be stored is tried again after the lease. */
  async #attempt(address: QueueAddress, job: StoredJob, context: object): Promise<boolean> {
    const { ctx, log, info, thread, meter } = this.#deps;
    let failed: FailedAttempt | null = null;
    try {
      await meter.measure(`queue ${this.#name}`, () => thread.run({ kind: 'job', index: this.#index }, publicJob({ ...job, attempts: job.attempts - 1 }), context, this.#options.timeoutMs));
    } catch (error) {
      failed = this.#failure(job, error as Error);
      const about = { plugin: info.name, queue: this.#name, job: job.id, attempt: job.attempts, reason: failed.error, waitMs: failed.waitMs };
      if (this.#mayWarn()) log.warn(about, 'a job of a plugin failed; further failures in this queue within a minute are logged at the level debug only');
      else log.debug(about, 'a job of a plugin failed');
    }
    try {
      await endAttempt(ctx, address, job, failed);
    } catch (error) {
      log.warn({ err: error, plugin: info.name, queue: this.#name, job: job.id }, 'the end of a job of a plugin could not be stored; the job runs again');
    }
    return failed !== null;
  }

  #failure({ attempts }: StoredJob, error: Error & { ms?: number }): FailedAttempt {
    if (error instanceof PluginThreadEndedError) return { error: error.message, waitMs: 0, uncounted: true };
    if (isStoreError(error)) return { error: error.message, waitMs: STORE_RETRY_MS, uncounted: true };
    const next = this.#options.retryDelaysMs[attempts - 1];
    if (error.name === 'Permanent' || next === undefined) return { error: error.message, waitMs: null };
    if (error.name === 'RetryAfter' && error.ms !== undefined) return { error: error.message, waitMs: Math.min(MAX_RETRY_AFTER_MS, Math.max(0, error.ms)) };
    return { error: error.message, waitMs: next * (1 - JITTER + Math.random() * 2 * JITTER) };
  }
}

function nullIfDeleted(error: unknown): null {
  if (error instanceof CollabError && error.code === 'environment_not_found') return null;
  throw error;
}
