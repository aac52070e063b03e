import { firstLine } from '../../lib/thrown.ts';
import type { Config } from '../../config/schema.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { Context } from '../../domain/context.ts';
import type { Logger } from '../../observability/log.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { RunDeliveryFilters } from '../services/plugin-data.ts';
import { dryServices } from '../services/dry-services.ts';
import { FilterChain } from '../filters/filter-chain.ts';
import { localServices } from '../services/local-services.ts';
import { withDefaults } from '../loading/locate.ts';
import { isDeliveryFilter, knownOf, loadEntries } from '../loading/load-entries.ts';
import { pluginInStack } from '../loading/plugin-origin.ts';
import { reportEnds } from '../thread/plugin-thread.ts';
import type { PluginServices } from '../services/services.ts';
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
  let chain: FilterChain | undefined;
  const passes: RunDeliveryFilters = async (...call) => chain?.passes(...call) ?? true;
  const load = async (entry: PluginEntry): Promise<WebPlugin | null> => {
    if (knownOf(entry)?.runsInWebWorkers === false) return null;
    const services = (plugin: string): PluginServices => {
      const own = localServices(plugin, entry, { ctx, config, log, passes });
      return dryNow === undefined ? own : dryServices(own, dryNow);
    };
    return loadWebPlugin(entry, {
      publicUrl: config.publicUrl,
      services,
      now: dryNow,
      onEnd: reportEnds(log, metrics),
    });
  };
  const loaded = await loadEntries(withDefaults(config.plugins), load);
  const missing: string[] = [];
  for (const { entry, failure } of loaded) {
    if (failure === null) continue;
    if (!isOptional(entry, config)) throw failure;
    missing.push(entry.use);
    log.warn(
      { plugin: entry.use, reason: firstLine(failure) },
      'an optional plugin could not be loaded; the server runs without it',
    );
  }
  // Filters of one priority run in the order of the configuration.
  const plugins = loaded.flatMap(({ plugin }) => plugin ?? []);
  const filters = plugins.flatMap((plugin) => plugin.filters);
  const origins = plugins.flatMap(({ origin }) => origin ?? []);
  if (filters.length > 0) chain = new FilterChain(filters, { clock: ctx.clock, log, metrics });
  return {
    filters: filters.every(({ name }) => isDeliveryFilter(name)) ? undefined : chain,
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
