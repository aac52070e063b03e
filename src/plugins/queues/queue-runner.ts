import { environmentById } from '../../domain/environments/environments.ts';
import type { QueueAddress, StoredJob } from '../../domain/plugins/job.ts';
import { leaseJobs } from '../../domain/plugins/job-attempts.ts';
import { type JobGroup, readJob } from '../../domain/plugins/jobs.ts';
import { Rounds } from '../../lib/concurrency/rounds.ts';
import { CollabError } from '../../model/errors.ts';
import type { PluginEnvironment } from '../api.ts';
import { settingsIn } from '../loading/settings.ts';
import type { JobStarter, Reservation } from '../services/local-services.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { DueJobs, groupKey } from './due-jobs.ts';
import { FairShares } from './fair-shares.ts';
import { AttemptRunner, type AttemptRunnerDeps } from './attempt-runner.ts';

/** Jobs of one group that are begun with one commit. */
const LEASE_BATCH = 16;
/**
 * Milliseconds before the next round if jobs were added or have ended during a round. A round costs a read of the queue
 * and a commit, and so serves more jobs.
 */
const COLLECT_MS = 10;
/** How long an attempt may take beyond its deadline until its end is on disk, in milliseconds. */
const LEASE_MARGIN_MS = 10_000;

/** Dependencies of a queue. */
export interface QueueRunnerDeps extends AttemptRunnerDeps {
  readonly info: PluginInfo;
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
  readonly #name: string;
  readonly #leaseMs: number;
  readonly #due: DueJobs;
  /** Who may run how much, by `groupKey`. */
  readonly #shares: FairShares;
  readonly #attempts: AttemptRunner;
  readonly #rounds = new Rounds(() => this.#round(), COLLECT_MS);
  /** The attempts that run, by `<environmentId> <id>`. */
  readonly #running = new Map<string, Promise<void>>();
  /** Whether jobs may be due that found no place in the last round: new ones wait their turn behind them. */
  #mayHaveDue = true;

  /** @param index the place of the queue among those of the plugin */
  constructor(deps: QueueRunnerDeps, index: number) {
    const { ctx, log, info, rememberedGroups } = deps;
    const queue = info.hooks.queues[index];
    if (queue === undefined) throw new Error(`the plugin has no queue ${index}`);
    const { name, options } = queue;
    this.#deps = deps;
    this.#name = name;
    this.#leaseMs = options.timeoutMs + LEASE_MARGIN_MS;
    const isRunning = (group: JobGroup, id: string): boolean => this.#running.has(runKey(group, id));
    this.#due = new DueJobs({ ctx, log, plugin: info.name, queue: name, leaseMs: this.#leaseMs, isRunning });
    this.#shares = new FairShares(options.concurrency, options.groupConcurrency, rememberedGroups);
    this.#attempts = new AttemptRunner(deps, info.name, index, queue);
  }

  /** Whether this runs the jobs of the queue. */
  isOf(plugin: string, queue: string): boolean {
    return this.#deps.info.name === plugin && this.#name === queue;
  }

  reserve(environment: PluginEnvironment, group: string): Reservation | null {
    const { id, slug } = environment;
    const { name, settings } = this.#deps.info;
    const { enabled, config } = settingsIn(settings, slug);
    const key = groupKey({ environmentId: id, group });
    if (this.#rounds.isStopped || !this.#due.areLeasesFreed || this.#mayHaveDue || !enabled) return null;
    if (this.#shares.placesFor(key) === 0) return null;
    this.#shares.begin(key);
    return {
      leaseMs: this.#leaseMs,
      begin: (job) => {
        const address = { environmentId: id, plugin: name, queue: this.#name };
        this.#run(address, key, job, { environment: { id, slug }, config });
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
    this.#due.reread();
    this.poll();
  }

  /** Starts the jobs that are due. Call it when jobs were added or retried. */
  poll(): void {
    this.#rounds.ask();
  }

  /** Starts no more jobs. Resolves once the running ones have ended. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
    await Promise.all(this.#running.values());
  }

  /** One round over the groups. Returns whether a group may have more due jobs than were begun. */
  async #round(): Promise<boolean> {
    let isBehind = false;
    try {
      this.#mayHaveDue = false;
      const groups = await this.#due.groups();
      this.#shares.beginRound(groups.length);
      const found = new Set<string>();
      for (const group of this.#shares.inTurn(groups, groupKey)) {
        if (this.#rounds.isStopped) return false;
        if (await this.#startGroup(group, found)) isBehind = true;
      }
      this.#shares.endRound(found);
      return isBehind;
    } catch (error) {
      this.#deps.log.error(
        { err: error, plugin: this.#deps.info.name, queue: this.#name },
        'the jobs of a plugin could not be read; they are tried again',
      );
      return false;
    }
  }

  /**
   * Begins the due jobs of a group for which there are places. Returns whether as many were begun as there were places.
   *
   * @param found receives the key of the group if it has due jobs
   */
  async #startGroup(group: JobGroup, found: Set<string>): Promise<boolean> {
    const key = groupKey(group);
    const places = Math.min(LEASE_BATCH, this.#shares.placesFor(key));
    if (places <= 0) {
      this.#mayHaveDue = true;
      if (this.#shares.isActive(key)) found.add(key);
      return false;
    }
    const due = (await this.#due.next(group, LEASE_BATCH)).slice(0, places);
    const [first, last] = [due[0], due.at(-1)];
    if (first === undefined || last === undefined) return false;
    found.add(key);
    if ((await this.#hasFailedBefore(group, key, first.id)) && this.#shares.placesFor(key) === 0) {
      this.#mayHaveDue = true;
      return false;
    }
    if (due.length === places) this.#mayHaveDue = true;
    const context = await this.#contextOf(group);
    if (context === null) return false;
    const ids = due.map(({ id }) => id);
    const leased = await leaseJobs(this.#deps.ctx, group, ids, this.#leaseMs);
    this.#shares.tookTurn(key);
    this.#due.begun(group, last.dueAt);
    for (const job of leased) {
      this.#shares.begin(key);
      this.#run(group, key, job, context);
    }
    return leased.length === places;
  }

  /** The context of jobs in the environment of a group; null if it was deleted or the plugin is turned off there. */
  async #contextOf({ environmentId }: JobGroup): Promise<object | null> {
    const { ctx, info } = this.#deps;
    const environment = await environmentById(ctx, environmentId).catch(nullIfDeleted);
    if (environment === null) return null;
    const { id, slug } = environment;
    const { enabled, config } = settingsIn(info.settings, slug);
    return enabled ? { environment: { id, slug }, config } : null;
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

  /** Runs an attempt in a place that `FairShares.begin` has counted. */
  #run(address: QueueAddress, key: string, job: StoredJob, context: object): void {
    const { clock } = this.#deps.ctx;
    const begunAt = clock.monotonic();
    const running = runKey(address, job.id);
    const attempt = this.#attempts.run(address, job, { ...context, attempt: job.attempts }).then((failed) => {
      this.#running.delete(running);
      if (failed?.uncounted === true) this.#shares.release(key);
      else this.#shares.end(key, failed === null, clock.monotonic() - begunAt);
      if (!this.#rounds.isStopped && (failed !== null || this.#mayHaveDue)) this.poll();
    });
    this.#running.set(running, attempt);
  }
}

const runKey = ({ environmentId }: QueueAddress, id: string): string => `${environmentId} ${id}`;

function nullIfDeleted(error: unknown): null {
  if (error instanceof CollabError && error.code === 'environment_not_found') return null;
  throw error;
}
