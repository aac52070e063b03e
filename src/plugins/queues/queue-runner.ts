import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import {
  endAttempt,
  type FailedAttempt,
  freeLeases,
  leaseJobs,
  makeDueEarlier,
} from '../../domain/plugins/job-attempts.ts';
import { LeaseLostError } from '../../domain/leases/leases.ts';
import type { QueueAddress, StoredJob } from '../../domain/plugins/job.ts';
import { type JobGroup, jobGroups, nextJobs, readJob } from '../../domain/plugins/jobs.ts';
import { clockOffset, timestamp } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { CollabError, isStoreError } from '../../model/errors.ts';
import type { PluginEnvironment, QueueOptions } from '../api.ts';
import type { HookMeter } from '../thread/hook-meter.ts';
import { type JobStarter, publicJob, type Reservation } from '../services/local-services.ts';
import { PluginThreadEndedError, type PluginThread } from '../thread/plugin-thread.ts';
import { FairShares } from './fair-shares.ts';
import { settingsIn } from '../loading/settings.ts';
import type { PluginInfo } from '../thread/messages.ts';

/** Jobs of one group that are begun with one commit. */
const LEASE_BATCH = 16;
/**
 * Milliseconds before the next round if jobs were added or have ended during a round. A round costs a read of the queue
 * and a commit, and so serves more jobs.
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
/**
 * If the wall clock goes back by more than this between two polls, in milliseconds, it was set back; by less, it was
 * corrected.
 */
const CLOCK_STEP_MS = 1_000;

/** Dependencies of a queue. */
export interface QueueRunnerDeps {
  readonly ctx: Context;
  readonly log: Logger;
  readonly info: PluginInfo;
  readonly thread: PluginThread;
  readonly meter: HookMeter;
  /** As `LeaseKeeper.confirm`; called before each attempt. */
  readonly confirm?: (() => Promise<void>) | undefined;
  /** How many groups are kept in mind; that of `FairShares` if absent. */
  readonly rememberedGroups?: number;
}

/**
 * Runs the due jobs of one queue of a plugin over all environments. Groups of jobs take turns (`FairShares`). Create it
 * only under the lease of the background work: it begins with the jobs that earlier holders were running, whose commits
 * are refused from then on.
 */
export class QueueRunner implements JobStarter {
  readonly #deps: QueueRunnerDeps;
  readonly #index: number;
  readonly #name: string;
  readonly #options: Required<QueueOptions>;
  /** Who may run how much, by `<environmentId> <group>`. */
  readonly #shares: FairShares;
  readonly #tasks = new Set<Promise<void>>();
  /** The running jobs, as `<environmentId> <id>`. */
  readonly #runningJobs = new Set<string>();
  /**
   * The `dueAt` of the last job of each group, by `<environmentId> <group>`, that was begun since `pollAll`. The next
   * ones are read from there on: from the start, each read would pass over the keys of all jobs that were begun before
   * and are still in the base table.
   */
  readonly #begunUpTo = new Map<string, string>();
  #filling: Promise<void> | null = null;
  #again = false;
  /** Whether the last round began as many jobs as it could. */
  #isBehind = false;
  /** Whether jobs may be due that found no place in the last round: new ones wait their turn behind them. */
  #mayHaveDue = true;
  #stopped = false;
  /** Whether the jobs that processes before this one have left leased are due. */
  #leasesFreed = false;
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
    this.#shares = new FairShares(queue.options.concurrency, queue.options.groupConcurrency, deps.rememberedGroups);
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
    // A job that began before the leases are freed would be freed with them.
    if (this.#stopped || !this.#leasesFreed || this.#mayHaveDue || !enabled || this.#shares.placesFor(key) === 0)
      return null;
    this.#shares.begin(key);
    return {
      leaseMs: this.#leaseMs,
      begin: (job) => {
        this.#run({ environmentId: id, plugin: name, queue: this.#name }, key, job, {
          environment: { id, slug },
          config,
        });
      },
      release: () => {
        this.#shares.release(key);
        if (this.#mayHaveDue) this.poll();
      },
    };
  }

  /**
   * Starts the jobs that are due, also those with an earlier `dueAt` than the last one that was begun. Call it
   * periodically.
   */
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
        this.#deps.log.error(
          { err: error, plugin: this.#deps.info.name, queue: this.#name },
          'the jobs of a plugin could not be read; they are tried again',
        );
      }
    }
  }

  /**
   * One round over the groups, in the order of `FairShares.inTurn`. The first one frees the leases of earlier
   * processes.
   */
  async #startDue(): Promise<void> {
    const { ctx, info } = this.#deps;
    this.#mayHaveDue = false;
    const groups = (await jobGroups(ctx, `${info.name}~${this.#name}~`)).filter(({ counts }) => counts.waiting > 0);
    await this.#followClock(groups);
    if (!this.#leasesFreed) {
      // The lease of this process shows that every earlier one which ran jobs has ended, or is refused its commits.
      for (const group of groups) await freeLeases(ctx, group, this.#leaseMs);
      this.#leasesFreed = true;
    }
    this.#shares.beginRound(groups.length);
    const due = new Set<string>();
    for (const group of this.#shares.inTurn(groups, keyOf)) {
      if (this.#stopped) return;
      await this.#startGroup(group, due);
    }
    this.#shares.endRound(due);
  }

  /** Makes jobs due earlier if the wall clock was set back: otherwise they would wait as much longer. */
  async #followClock(groups: readonly JobGroup[]): Promise<void> {
    const { ctx, log, info } = this.#deps;
    const offset = clockOffset(ctx.clock);
    const setBackMs = Math.round(this.#clockOffset - offset);
    if (setBackMs > CLOCK_STEP_MS) {
      for (const group of groups) await makeDueEarlier(ctx, group, setBackMs, (id) => this.#isRunning(group, id));
      this.#begunUpTo.clear();
      log.warn(
        { plugin: info.name, queue: this.#name, setBackMs },
        'the clock was set back: waiting jobs of a plugin are due earlier by as much',
      );
    }
    this.#clockOffset = offset;
  }

  get #leaseMs(): number {
    return this.#options.timeoutMs + LEASE_MARGIN_MS;
  }

  /** @param found receives the key of the group if it has due jobs */
  async #startGroup(group: JobGroup, found: Set<string>): Promise<void> {
    const { ctx, info } = this.#deps;
    const key = keyOf(group);
    const places = Math.min(LEASE_BATCH, this.#shares.placesFor(key));
    if (places <= 0) {
      this.#mayHaveDue = true;
      if (this.#shares.isActive(key)) found.add(key);
      return;
    }
    const now = timestamp(ctx.clock.now());
    // A job may run for longer than its lease: while its thread starts, or while others run alone.
    const due = (await nextJobs(ctx, group, LEASE_BATCH, this.#begunUpTo.get(key)))
      .filter(({ id, dueAt }) => dueAt <= now && !this.#isRunning(group, id))
      .slice(0, places);
    const [first] = due;
    if (first === undefined) return;
    found.add(key);
    if ((await this.#hasFailedBefore(group, key, first.id)) && this.#shares.placesFor(key) === 0) {
      this.#mayHaveDue = true;
      return;
    }
    if (due.length === places) this.#mayHaveDue = true;
    const environment = await environmentById(ctx, group.environmentId).catch(nullIfDeleted);
    if (environment === null) return;
    const { enabled, config } = settingsIn(info.settings, environment.slug);
    if (!enabled) return;
    const leased = await leaseJobs(
      ctx,
      group,
      due.map(({ id }) => id),
      this.#leaseMs,
    );
    if (leased.length === places) this.#isBehind = true;
    this.#shares.tookTurn(key);
    const last = due.at(-1);
    if (last !== undefined) this.#begunUpTo.set(key, last.dueAt);
    for (const job of leased) {
      this.#shares.begin(key);
      this.#run(group, key, job, { environment: { id: environment.id, slug: environment.slug }, config });
    }
  }

  /**
   * Whether the first due job of a group that this process has not tried failed before: what is known of it is stored
   * with its jobs.
   */
  async #hasFailedBefore(group: JobGroup, key: string, id: string): Promise<boolean> {
    if (this.#shares.standingOf(key) !== 'untried') return false;
    const job = await readJob(this.#deps.ctx.store, group, id);
    if (job === undefined || job.lastError === null) return false;
    this.#shares.setFailing(key);
    return true;
  }

  #run(address: QueueAddress, key: string, job: StoredJob, context: object): void {
    const running = `${address.environmentId} ${job.id}`;
    this.#runningJobs.add(running);
    const { clock } = this.#deps.ctx;
    const begunAt = clock.monotonic();
    const task = this.#attempt(address, job, { ...context, attempt: job.attempts }).then((failed) => {
      this.#tasks.delete(task);
      this.#runningJobs.delete(running);
      if (failed?.uncounted === true) this.#shares.release(key);
      else this.#shares.end(key, failed === null, clock.monotonic() - begunAt);
      if (!this.#stopped && (failed !== null || this.#mayHaveDue)) this.poll();
    });
    this.#tasks.add(task);
  }

  #isRunning({ environmentId }: QueueAddress, id: string): boolean {
    return this.#runningJobs.has(`${environmentId} ${id}`);
  }

  /** Whether a failure is logged as a warning: one per minute, since thousands of jobs can fail for one reason. */
  #mayWarn(): boolean {
    const now = this.#deps.ctx.clock.monotonic();
    if (now < this.#quietUntil) return false;
    this.#quietUntil = now + WARN_MS;
    return true;
  }

  /**
   * Runs an attempt, stores its end, and returns how it failed; null if it succeeded. Never rejects: what cannot be
   * stored is tried again after the lease.
   */
  async #attempt(address: QueueAddress, job: StoredJob, context: object): Promise<FailedAttempt | null> {
    const { ctx, log, info, thread, meter } = this.#deps;
    let failed: FailedAttempt | null = null;
    try {
      await this.#deps.confirm?.();
      await meter.measure(`queue ${this.#name}`, () =>
        thread.run(
          { kind: 'job', index: this.#index },
          publicJob({ ...job, attempts: job.attempts - 1 }),
          context,
          this.#options.timeoutMs,
        ),
      );
    } catch (error) {
      failed = this.#failure(job, error as Error);
      const about = {
        plugin: info.name,
        queue: this.#name,
        job: job.id,
        attempt: job.attempts,
        reason: failed.error,
        waitMs: failed.waitMs,
      };
      if (this.#mayWarn())
        log.warn(
          about,
          'a job of a plugin failed; further failures in this queue within a minute are logged at the level debug only',
        );
      else log.debug(about, 'a job of a plugin failed');
    }
    try {
      await endAttempt(ctx, address, job, failed);
    } catch (error) {
      log.warn(
        { err: error, plugin: info.name, queue: this.#name, job: job.id },
        'the end of a job of a plugin could not be stored; the job runs again',
      );
    }
    return failed;
  }

  #failure({ attempts }: StoredJob, error: Error & { ms?: number }): FailedAttempt {
    if (error instanceof PluginThreadEndedError || error instanceof LeaseLostError)
      return { error: error.message, waitMs: 0, uncounted: true };
    if (isStoreError(error)) return { error: error.message, waitMs: STORE_RETRY_MS, uncounted: true };
    const next = this.#options.retryDelaysMs[attempts - 1];
    if (error.name === 'Permanent' || next === undefined) return { error: error.message, waitMs: null };
    if (error.name === 'RetryAfter' && error.ms !== undefined)
      return { error: error.message, waitMs: Math.min(MAX_RETRY_AFTER_MS, Math.max(0, error.ms)) };
    return { error: error.message, waitMs: next * (1 - JITTER + Math.random() * 2 * JITTER) };
  }
}

const keyOf = ({ environmentId, group }: JobGroup): string => `${environmentId} ${group}`;

function nullIfDeleted(error: unknown): null {
  if (error instanceof CollabError && error.code === 'environment_not_found') return null;
  throw error;
}
