import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { IN_APP } from '../../domain/notifications/settings.ts';
import { jobGroups } from '../../domain/plugins/jobs.ts';
import type { Logger } from '../../observability/log.ts';
import type { Labels, Metrics } from '../../observability/metrics.ts';
import { FilterChain, type PluginFilter } from '../filters/filter-chain.ts';
import { HookMeter } from '../thread/hook-meter.ts';
import { localServices } from '../services/local-services.ts';
import type { RunDeliveryFilters } from '../services/plugin-data.ts';
import { withDefaults } from '../loading/locate.ts';
import { isDeliveryFilter, knownOf, loadEntries } from '../loading/load-entries.ts';
import { findUnknownEnvironments } from '../loading/unknown-environments.ts';
import { type PluginThread, reportEnds } from '../thread/plugin-thread.ts';
import { loadInThread, type ThreadPlugin } from '../thread/thread-plugin.ts';
import { workerThreadFilters } from '../filters/worker-thread-filters.ts';
import type { InboxFilter } from '../../ports/filters.ts';
import type { Consumer } from '../../domain/events/consumer.ts';
import { pluginConsumer } from './plugin-consumer.ts';
import { QueueRunner } from '../queues/queue-runner.ts';

/** How often threads that have nothing to do are ended. */
const IDLE_MS = 60_000;
/** How often a plugin is loaded until it is left out. */
const LOAD_ATTEMPTS = 3;

/** Dependencies of the plugins of the background worker. */
export interface BackgroundPluginDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  /** As `LeaseKeeper.confirm`; called before each attempt at a job. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

/** The actions and queues of all plugins, each plugin in a thread of its own. */
export class BackgroundPlugins {
  /** The consumers of events of the plugins that have actions. */
  readonly consumers: readonly Consumer[];
  /** Runs the filters `notification.deliver` for the inbox; undefined if there are none. */
  readonly inboxFilter: InboxFilter | undefined;
  /** The `use` of the entries whose plugin could not be loaded: its actions and jobs do not run. */
  readonly missing: readonly string[];
  readonly #threads: readonly PluginThread[];
  readonly #runners: readonly QueueRunner[];
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    consumers: readonly Consumer[],
    inboxFilter: InboxFilter | undefined,
    missing: readonly string[],
    threads: readonly PluginThread[],
    runners: readonly QueueRunner[],
  ) {
    this.consumers = consumers;
    this.inboxFilter = inboxFilter;
    this.missing = missing;
    this.#threads = threads;
    this.#runners = runners;
  }

  /**
   * Loads the plugins of the configuration; those with a manifest are loaded with their first run. One that cannot be
   * loaded, or has the name of another one, is logged and left out. Never rejects.
   */
  static async load({ ctx, config, log, metrics, confirm }: BackgroundPluginDeps): Promise<BackgroundPlugins> {
    const threads: PluginThread[] = [];
    const runners: QueueRunner[] = [];
    const consumers: Consumer[] = [];
    const filters: PluginFilter[] = [];
    const missing: string[] = [];
    let chain: FilterChain | null = null;
    const starterOf = (plugin: string, queue: string): QueueRunner | undefined =>
      runners.find((runner) => runner.isOf(plugin, queue));
    const passes: RunDeliveryFilters = async (...call) => chain?.passes(...call) ?? true;
    const load = async (entry: PluginEntry): Promise<ThreadPlugin | null> => {
      if (knownOf(entry)?.runsInBackground === false) return null;
      return loadInThread(entry, {
        publicUrl: config.publicUrl,
        services: (plugin) => localServices(plugin, entry, { ctx, config, log, passes, starterOf }),
        onEnd: reportEnds(log, metrics),
        attempts: LOAD_ATTEMPTS,
        onFailedAttempt: (error, attempt) => {
          if (entry.optional !== true)
            log.warn({ err: error, plugin: entry.use, attempt }, 'a plugin could not be loaded; it is tried again');
        },
      });
    };
    const loaded = await loadEntries(withDefaults(config.plugins), load);
    for (const { entry, failure } of loaded) {
      if (failure === null) continue;
      missing.push(entry.use);
      logMissing(entry, failure, log);
    }
    for (const { use, slugs } of await findUnknownEnvironments(ctx, config.plugins)) {
      log.warn(
        { plugin: use, environments: slugs },
        'the entry of a plugin has options for environments that do not exist',
      );
    }
    for (const { thread, info } of loaded.flatMap(({ plugin }) => plugin ?? [])) {
      threads.push(thread);
      const meter = new HookMeter(info.name, metrics);
      const consumer = pluginConsumer(ctx, info, thread, meter);
      if (consumer !== null) consumers.push(consumer);
      info.hooks.queues.forEach((_, index) =>
        runners.push(new QueueRunner({ ctx, log, info, thread, meter, confirm }, index)),
      );
      filters.push(...workerThreadFilters(info, thread).filter(({ name }) => isDeliveryFilter(name)));
    }
    const deliveries = new FilterChain(filters, { clock: ctx.clock, log, metrics });
    chain = deliveries;
    const inboxFilter: InboxFilter = (environment, notification) =>
      deliveries.passes(environment, 'notification.deliver', { channel: IN_APP, notification });
    if (metrics !== undefined) await countJobs(ctx, metrics);
    return new BackgroundPlugins(
      consumers,
      filters.some(({ name }) => name === 'notification.deliver') ? inboxFilter : undefined,
      missing,
      threads,
      runners,
    );
  }

  /** Begins to end threads that are idle, until `stop`. */
  start(): void {
    this.#timer = setInterval(() => void Promise.all(this.#threads.map((thread) => thread.endIfIdle())), IDLE_MS);
  }

  /** Starts the jobs that are due. Call it periodically, after `start` and before `stop`. */
  poll(): void {
    for (const runner of this.#runners) runner.pollAll();
  }

  /** Waits for the running jobs, then ends the threads. Stop the consumers before. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#runners.map((runner) => runner.stop()));
    await Promise.all(this.#threads.map((thread) => thread.stop()));
  }
}

/** Logs that the plugin of an entry is left out; for an optional one in one line, since the operator has allowed for it. */
function logMissing({ use, optional }: PluginEntry, failure: Error, log: Logger): void {
  if (optional === true)
    log.warn(
      { plugin: use, reason: firstLine(failure) },
      'an optional plugin could not be loaded: its actions and jobs do not run until the next start',
    );
  else
    log.error(
      { err: failure, plugin: use },
      'a plugin could not be loaded: its actions and jobs do not run until the next start',
    );
}

/** Shows the jobs of all queues as of the last second. */
function countJobs(ctx: Context, metrics: Metrics): Promise<void> {
  let jobs: [Labels, number][] = [];
  const read = async (): Promise<void> => {
    const sums = new Map<string, [Labels, number]>();
    for (const { plugin, queue, counts } of await jobGroups(ctx)) {
      for (const state of ['waiting', 'dead'] as const) {
        const sum = sums.get(`${plugin} ${queue} ${state}`);
        sums.set(`${plugin} ${queue} ${state}`, [{ plugin, queue, state }, (sum?.[1] ?? 0) + counts[state]]);
      }
    }
    jobs = [...sums.values()];
  };
  metrics.gauge('plugin_jobs', () => {
    void read().catch(() => undefined);
    return jobs;
  });
  return read();
}
