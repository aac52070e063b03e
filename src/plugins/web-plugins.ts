import { Semaphore } from '../lib/concurrency/semaphore.ts';
import { firstLine } from '../lib/thrown.ts';
import type { Config } from '../config/schema.ts';
import type { PluginEntry } from '../config/plugin-entries.ts';
import type { Context } from '../domain/context.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { RunDeliveryFilters } from './services/plugin-data.ts';
import { dryServices } from './services/dry-services.ts';
import { FilterChain } from './filters/filter-chain.ts';
import { localServices } from './services/local-services.ts';
import { LOADS_AT_ONCE } from './loading/load.ts';
import { withDefaults } from './loading/locate.ts';
import { infoFromManifest } from './loading/manifest.ts';
import { inNamingOrder, PluginNames } from './loading/plugin-names.ts';
import { pluginInStack } from './loading/plugin-origin.ts';
import { reportEnds } from './thread/plugin-thread.ts';
import type { PluginServices } from './services/services.ts';
import type { PluginInfo } from './thread/messages.ts';
import { loadWebPlugin, type PluginRoute, type WebPlugin } from './web-plugin.ts';

/** Dependencies of the plugins of a web worker. */
export interface WebPluginDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  /** For a dry run, in which everything that plugins write is dropped: the time that they see. */
  readonly dryNow?: (() => number) | undefined;
}

/** The plugins of a web worker. */
export interface WebPlugins {
  /** Undefined if no plugin filters. */
  readonly filters: FilterChain | undefined;
  readonly routes: readonly PluginRoute[];
  /** Runs the filters of deliveries, and returns whether all let a delivery pass. */
  readonly passes: RunDeliveryFilters;
  /** The `use` of the entries whose plugin could not be loaded, although it is optional. */
  readonly missing: readonly string[];
  /** The plugin that is not isolated and whose code is in the stack of an error; null if there is none. */
  readonly pluginInStack: (error: unknown) => string | null;
  /** Ends the threads of isolated plugins. */
  close(): Promise<void>;
}

/**
 * Loads the plugins of the configuration for a web worker. Throws `PluginError` for one that cannot be loaded, or has
 * the name of another one, and is not optional.
 */
export async function loadWebPlugins(deps: WebPluginDeps): Promise<WebPlugins> {
  const { ctx, config, log, metrics, dryNow } = deps;
  const entries = withDefaults(config.plugins);
  const loaded = new Map<PluginEntry, WebPlugin>();
  const names = new PluginNames();
  const missing: string[] = [];
  let chain: FilterChain | undefined;
  const passes: RunDeliveryFilters = async (...call) => chain?.passes(...call) ?? true;
  const places = new Semaphore(LOADS_AT_ONCE);
  const load = async (entry: PluginEntry): Promise<WebPlugin | null> => {
    const services = (plugin: string): PluginServices => {
      const own = localServices(plugin, entry, { ctx, config, log, passes });
      return dryNow === undefined ? own : dryServices(own, dryNow);
    };
    if (entry.loadFailure !== undefined) throw new Error(entry.loadFailure);
    if (entry.checked?.runsInWebWorkers === false) return null;
    return places.run(() =>
      loadWebPlugin(entry, { publicUrl: config.publicUrl, services, now: dryNow, onEnd: reportEnds(log, metrics) }),
    );
  };
  const own = inNamingOrder(entries).filter((entry) => !hasOnlyBackgroundHooks(infoFromManifest(entry)));
  const outcomes = await Promise.allSettled(own.map(load));
  for (const [index, entry] of own.entries()) {
    const outcome = outcomes[index] as PromiseSettledResult<WebPlugin | null>;
    const plugin = outcome.status === 'fulfilled' ? outcome.value : null;
    try {
      if (outcome.status === 'rejected') throw outcome.reason;
      names.take(entry, plugin?.name ?? entry.checked?.name ?? entry.use);
      if (plugin !== null) loaded.set(entry, plugin);
    } catch (error) {
      await plugin?.close();
      if (!isOptional(entry, config)) throw error;
      missing.push(entry.use);
      log.warn(
        { plugin: entry.use, reason: firstLine(error) },
        'an optional plugin could not be loaded; the server runs without it',
      );
    }
  }
  // Filters of one priority run in the order of the configuration.
  const plugins = entries.flatMap((entry) => loaded.get(entry) ?? []);
  const filters = plugins.flatMap((plugin) => plugin.filters);
  const origins = plugins.flatMap(({ origin }) => origin ?? []);
  const writing = filters.filter(({ name }) => !name.endsWith('.deliver'));
  if (filters.length > 0) chain = new FilterChain(filters, { clock: ctx.clock, log, metrics });
  return {
    filters: writing.length > 0 ? chain : undefined,
    routes: plugins.flatMap(({ routes }) => routes),
    passes,
    missing,
    pluginInStack: (error) => pluginInStack(error, origins),
    close: async () => void (await Promise.all(plugins.map((plugin) => plugin.close()))),
  };
}

/**
 * Whether the server runs without a plugin that cannot be loaded. Those that nobody has configured are always optional.
 */
function isOptional(entry: PluginEntry, { plugins }: Config): boolean {
  return entry.optional === true || !plugins.includes(entry);
}

/** Whether a plugin registers nothing that a web worker runs; false if that is not known before it is loaded. */
function hasOnlyBackgroundHooks(info: PluginInfo | undefined): boolean {
  return info !== undefined && info.hooks.filters.length === 0 && info.hooks.routes.length === 0;
}
