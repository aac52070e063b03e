import { firstLine } from '../lib/thrown.ts';
import type { Config } from '../config/schema.ts';
import type { PluginEntry } from '../config/plugin-entries.ts';
import type { Context } from '../domain/context.ts';
import { within } from '../lib/concurrency/deadline.ts';
import { copyJson } from '../lib/copy-json.ts';
import type { Logger } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { FilterActor } from '../ports/filters.ts';
import type { FilterContext, HookContext, PluginEnvironment, RouteResponse, RouteOptions, RouteRequest } from './api.ts';
import type { Passes } from './plugin-data.ts';
import { dryServices } from './dry-services.ts';
import { type FilterCall, FilterChain, type PluginFilter } from './filter-chain.ts';
import { type Hooks, setUp } from './hooks.ts';
import { isIsolated, loadPlugin, type LoadedPlugin } from './load.ts';
import { localServices } from './local-services.ts';
import { withDefaults } from './locate.ts';
import { infoFromManifest } from './manifest.ts';
import { originOfModule, pluginInStack, type PluginOrigin } from './plugin-origin.ts';
import { PluginThread, reportEnds } from './plugin-thread.ts';
import type { PluginServices } from './services.ts';
import type { PluginSettings } from './settings.ts';
import type { PluginInfo } from './thread/messages.ts';
import { threadFilters } from './thread-filters.ts';

const ROUTE_MS = 5_000;

/** Dependencies of the plugins of a web worker. */
export interface WebPluginDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  /** For a dry run, in which everything that plugins write is dropped: the time that they see. */
  readonly dryNow?: (() => number) | undefined;
}

/** A route of a plugin. */
export interface PluginRoute {
  readonly plugin: string;
  readonly options: RouteOptions;
  readonly settings: PluginSettings;
  /** Runs it within 5 s. */
  readonly handle: (request: RouteRequest, context: Omit<HookContext<unknown>, 'signal'>) => Promise<RouteResponse>;
}

/** The plugins of a web worker. */
export interface WebPlugins {
  /** Undefined if no plugin filters. */
  readonly filters: FilterChain | undefined;
  readonly routes: readonly PluginRoute[];
  /** Runs the filters of deliveries, and returns whether all let a delivery pass. */
  readonly passes: Passes;
  /** One line for each plugin that could not be loaded although it is optional. */
  readonly warnings: readonly string[];
  /** The plugin that is not isolated and whose code is in the stack of an error; null if there is none. */
  readonly pluginInStack: (error: unknown) => string | null;
  /** Ends the threads of isolated plugins. */
  close(): Promise<void>;
}

/** Loads the plugins of the configuration for a web worker. Throws `PluginError` for one that cannot be loaded and is not optional. */
export async function loadWebPlugins(deps: WebPluginDeps): Promise<WebPlugins> {
  const { ctx, config, log, metrics, dryNow } = deps;
  const filters: PluginFilter[] = [];
  const routes: PluginRoute[] = [];
  const threads: PluginThread[] = [];
  const warnings: string[] = [];
  const origins: PluginOrigin[] = [];
  let chain: FilterChain | undefined;
  const passes: Passes = async (...call) => chain?.passes(...call) ?? true;
  for (const entry of withDefaults(config.plugins)) {
    const servicesOf = (plugin: string): PluginServices => {
      const services = localServices(plugin, entry, { ctx, config, log, passes });
      return dryNow === undefined ? services : dryServices(services, dryNow);
    };
    if (hasOnlyBackgroundHooks(infoFromManifest(entry))) continue;
    try {
      const loaded = await loadPlugin(entry);
      if (isIsolated(loaded)) {
        const thread = new PluginThread(entry, { publicUrl: config.publicUrl, services: servicesOf, now: dryNow, deadlineIncludesStart: true, onEnd: reportEnds(log, metrics) });
        threads.push(thread);
        const info = await thread.start();
        filters.push(...threadFilters(info, thread));
        routes.push(...info.hooks.routes.map((options, index): PluginRoute => ({ plugin: info.name, options, settings: info.settings, handle: async (request, context) => (await thread.run({ kind: 'route', index }, request, context, ROUTE_MS)) as RouteResponse })));
      } else {
        origins.push(originOfModule(loaded.plugin.name, loaded.url));
        const hooks = await setUp(loaded.plugin, servicesOf(loaded.plugin.name));
        filters.push(...localFilters(loaded, hooks));
        routes.push(...localRoutes(loaded, hooks));
      }
    } catch (error) {
      if (!isOptional(entry, config)) throw error;
      warnings.push(firstLine(error));
      log.warn({ plugin: entry.use, reason: firstLine(error) }, 'an optional plugin could not be loaded; the server runs without it');
    }
  }
  const writing = filters.filter(({ name }) => !name.endsWith('.deliver'));
  if (filters.length > 0) chain = new FilterChain(filters, { clock: ctx.clock, log, metrics });
  return { filters: writing.length > 0 ? chain : undefined, routes, passes, warnings, pluginInStack: (error) => pluginInStack(error, origins), close: async () => void (await Promise.all(threads.map((thread) => thread.stop()))) };
}

/** Whether the server runs without a plugin that cannot be loaded. Those that nobody has configured are always optional. */
function isOptional(entry: PluginEntry, { plugins }: Config): boolean {
  return entry.optional === true || !plugins.includes(entry);
}

/** Whether a plugin registers nothing that a web worker runs; false if that is not known before it is loaded. */
function hasOnlyBackgroundHooks(info: PluginInfo | undefined): boolean {
  return info !== undefined && info.hooks.filters.length === 0 && info.hooks.routes.length === 0;
}

function localFilters({ plugin, settings }: LoadedPlugin, hooks: Hooks): PluginFilter[] {
  return hooks.filters.map(({ name, filter, options }) => ({
    plugin: plugin.name,
    name,
    options,
    settings,
    run: (payload, call) =>
      runWithin(options.timeoutMs, (signal) => filter(copyJson(payload) as Parameters<typeof filter>[0], new LocalFilterContext(call, signal))),
  }));
}

/** The context of a filter in this process. An object literal with a getter takes ten times as long to create. */
class LocalFilterContext implements FilterContext<unknown> {
  readonly environment: PluginEnvironment;
  readonly actor: FilterActor;
  readonly config: unknown;
  readonly #signal: () => AbortSignal;

  constructor({ environment, actor, config }: FilterCall, signal: () => AbortSignal) {
    this.environment = environment;
    this.actor = actor;
    this.config = config;
    this.#signal = signal;
  }

  get signal(): AbortSignal {
    return this.#signal();
  }
}

function localRoutes({ plugin, settings }: LoadedPlugin, hooks: Hooks): PluginRoute[] {
  return hooks.routes.map(({ options, handle }) => ({
    plugin: plugin.name,
    options,
    settings,
    handle: (request, context) => runWithin(ROUTE_MS, (signal) => handle(request, { ...context, signal: signal() })),
  }));
}

/**
 * Runs `work`, and rejects if it has not ended after `ms`; its signal is aborted then. Work that returns no promise has ended:
 * it costs no timer, and a signal only if it asks for one.
 *
 * @param work receives a function that returns its signal
 */
async function runWithin<T>(ms: number, work: (signal: () => AbortSignal) => T | Promise<T>): Promise<T> {
  let abort: AbortController | undefined;
  const result = work(() => (abort ??= new AbortController()).signal);
  if (!isThenable(result)) return result;
  return within(ms, result, () => {
    abort ??= new AbortController();
    abort.abort();
    throw new Error(`did not end within ${ms} ms`);
  });
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
