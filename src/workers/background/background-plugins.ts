import { firstLine } from '../../lib/thrown.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { IN_APP } from '../../domain/notifications/settings.ts';
import { jobGroups } from '../../domain/plugins/jobs.ts';
import type { Logger } from '../../observability/log.ts';
import type { Labels, Metrics } from '../../observability/metrics.ts';
import { FilterChain, type PluginFilter } from '../../plugins/filters/filter-chain.ts';
import { HookMeter } from '../../plugins/hook-meter.ts';
import { localServices } from '../../plugins/services/local-services.ts';
import { LOADS_AT_ONCE } from '../../plugins/loading/load.ts';
import { withDefaults } from '../../plugins/loading/locate.ts';
import { infoFromManifest } from '../../plugins/loading/manifest.ts';
import { inNamingOrder, PluginNames } from '../../plugins/loading/plugin-names.ts';
import { findUnknownEnvironments } from '../../plugins/loading/unknown-environments.ts';
import { PluginThread, reportEnds } from '../../plugins/thread/plugin-thread.ts';
import { workerThreadFilters } from '../../plugins/filters/worker-thread-filters.ts';
import type { PluginInfo } from '../../plugins/thread/messages.ts';
import type { InboxFilter } from '../../ports/filters.ts';
import type { Consumer } from './consumer.ts';
import { pluginConsumer } from './plugin-consumer.ts';
import { QueueRunner } from './queue-runner.ts';

/** How often queues are checked for jobs that became due, or that other processes have added. */
const POLL_MS = 200;
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

/** A plugin that was loaded, or has a manifest, and its thread. */
interface LoadedThread {
  readonly thread: PluginThread;
  readonly info: PluginInfo;
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
  #timers: NodeJS.Timeout[] = [];

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
    const names = new PluginNames();
    const loaded = new Map<PluginEntry, LoadedThread>();
    let chain: FilterChain | null = null;
    const starterOf = (plugin: string, queue: string): QueueRunner | undefined =>
      runners.find((runner) => runner.isOf(plugin, queue));
    const entries = withDefaults(config.plugins);
    const places = new Semaphore(LOADS_AT_ONCE);
    const load = async (entry: PluginEntry): Promise<LoadedThread | null> => {
      if (entry.checked?.runsInBackground === false) return null;
      const thread = new PluginThread(entry, {
        publicUrl: config.publicUrl,
        services: (plugin) =>
          localServices(plugin, entry, {
            ctx,
            config,
            log,
            passes: async (...call) => chain?.passes(...call) ?? true,
            starterOf,
          }),
        onEnd: reportEnds(log, metrics),
      });
      const info = infoFromManifest(entry) ?? (await places.run(() => startThread(thread, entry, log)));
      if (info !== null) return { thread, info };
      await thread.stop();
      return null;
    };
    const ordered = inNamingOrder(entries);
    const started = await Promise.all(ordered.map(load));
    for (const [index, entry] of ordered.entries()) {
      const plugin = started[index] ?? null;
      const name = plugin?.info.name ?? entry.checked?.name;
      const isKnown = plugin !== null || entry.checked?.runsInBackground === false;
      if (isKnown && hasOwnName(entry, name ?? entry.use, names, log)) {
        if (plugin !== null) loaded.set(entry, plugin);
        continue;
      }
      missing.push(entry.use);
      await plugin?.thread.stop();
    }
    for (const { use, slugs } of await findUnknownEnvironments(ctx, config.plugins)) {
      log.warn(
        { plugin: use, environments: slugs },
        'the entry of a plugin has options for environments that do not exist',
      );
    }
    for (const { thread, info } of entries.flatMap((entry) => loaded.get(entry) ?? [])) {
      threads.push(thread);
      const meter = new HookMeter(info.name, metrics);
      const consumer = pluginConsumer(ctx, info, thread, meter);
      if (consumer !== null) consumers.push(consumer);
      info.hooks.queues.forEach((_, index) =>
        runners.push(new QueueRunner({ ctx, log, info, thread, meter, confirm }, index)),
      );
      filters.push(...workerThreadFilters(info, thread).filter(({ name }) => name.endsWith('.deliver')));
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

  /** Runs jobs until `stop`. */
  start(): void {
    const poll = setInterval(() => this.#runners.forEach((runner) => runner.pollAll()), POLL_MS);
    const endIdle = setInterval(() => void Promise.all(this.#threads.map((thread) => thread.endIfIdle())), IDLE_MS);
    this.#timers = [poll, endIdle];
  }

  /** Waits for the running jobs, then ends the threads. Stop the consumers before. */
  async stop(): Promise<void> {
    this.#timers.forEach((timer) => clearInterval(timer));
    await Promise.all(this.#runners.map((runner) => runner.stop()));
    await Promise.all(this.#threads.map((thread) => thread.stop()));
  }
}

/** Takes the name of a plugin. Logs it and returns false if another one has that name. */
function hasOwnName(entry: PluginEntry, name: string, names: PluginNames, log: Logger): boolean {
  try {
    names.take(entry, name);
    return true;
  } catch (error) {
    log.warn({ plugin: entry.use, reason: firstLine(error) }, 'a plugin is left out: its actions and jobs do not run');
    return false;
  }
}

/**
 * Starts the thread of a plugin; null if it fails several times. Whatever made it slow once, such as a busy machine,
 * may have passed. For an optional plugin one line is logged, since the operator has allowed for it.
 */
async function startThread(
  thread: PluginThread,
  { use, optional, loadFailure }: PluginEntry,
  log: Logger,
): Promise<PluginInfo | null> {
  const giveUp = (reason: string): null => {
    log.warn(
      { plugin: use, reason },
      'an optional plugin could not be loaded: its actions and jobs do not run until the next start',
    );
    return null;
  };
  if (loadFailure !== undefined) return giveUp(loadFailure);
  for (let attempt = 1; ; attempt++) {
    try {
      return await thread.start();
    } catch (error) {
      if (attempt < LOAD_ATTEMPTS) {
        if (optional !== true)
          log.warn({ err: error, plugin: use, attempt }, 'a plugin could not be loaded; it is tried again');
        continue;
      }
      if (optional === true) return giveUp(firstLine(error));
      log.error(
        { err: error, plugin: use },
        'a plugin could not be loaded: its actions and jobs do not run until the next start',
      );
      return null;
    }
  }
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
