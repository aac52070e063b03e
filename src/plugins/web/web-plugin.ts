import type { PluginEntry } from '../../config/plugin-entries.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { copyJson } from '../../lib/copy-json.ts';
import { beginHook, endHook, type HookName } from '../../observability/running-hooks.ts';
import type { FilterActor } from '../../model/filter.ts';
import type {
  FilterContext,
  HookContext,
  PluginEnvironment,
  RouteResponse,
  RouteOptions,
  RouteRequest,
} from '../api.ts';
import type { FilterCall, PluginFilter } from '../filters/filter-chain.ts';
import { type Hooks, setUp } from '../hooks.ts';
import { knownOf } from '../loading/load-entries.ts';
import { isIsolated, loadPlugin, type LoadedPlugin } from '../loading/load.ts';
import { originOfModule, type PluginOrigin } from '../loading/plugin-origin.ts';
import type { PluginThreadDeps } from '../thread/plugin-thread.ts';
import { loadInThread } from '../thread/thread-plugin.ts';
import type { PluginSettings } from '../loading/settings.ts';
import { workerThreadFilters } from '../filters/worker-thread-filters.ts';

const ROUTE_MS = 5_000;

/** A route of a plugin. */
export interface PluginRoute {
  readonly plugin: string;
  readonly options: RouteOptions;
  readonly settings: PluginSettings;
  /** Runs it within 5 s. */
  readonly handle: (request: RouteRequest, context: Omit<HookContext<unknown>, 'signal'>) => Promise<RouteResponse>;
}

/** A plugin that was loaded for a web worker, in its thread or, if it is isolated, in one of its own. */
export interface WebPlugin {
  readonly name: string;
  readonly filters: readonly PluginFilter[];
  readonly routes: readonly PluginRoute[];
  /** Where its code is; undefined if it is isolated. */
  readonly origin: PluginOrigin | undefined;
  /** Ends its thread, if it has one. */
  close(): Promise<void>;
}

/**
 * Loads the plugin of an entry and sets it up. One that is known to be isolated is loaded only in its thread. Throws
 * `PluginError`.
 */
export async function loadWebPlugin(entry: PluginEntry, deps: PluginThreadDeps): Promise<WebPlugin> {
  if (entry.isolation === 'worker' || knownOf(entry)?.isolated === true) return startIsolated(entry, deps);
  const loaded = await loadPlugin(entry);
  return isIsolated(loaded) ? startIsolated(entry, deps) : setUpLocal(loaded, deps);
}

async function startIsolated(entry: PluginEntry, deps: PluginThreadDeps): Promise<WebPlugin> {
  const { info, thread, close } = await loadInThread(entry, { ...deps, deadlineIncludesStart: true });
  const routes = info.hooks.routes.map((options, index): PluginRoute => ({
    plugin: info.name,
    options,
    settings: info.settings,
    handle: async (request, context) =>
      (await thread.run({ kind: 'route', index }, request, context, ROUTE_MS)) as RouteResponse,
  }));
  return {
    name: info.name,
    filters: workerThreadFilters(info, thread),
    routes,
    origin: undefined,
    close,
  };
}

async function setUpLocal(loaded: LoadedPlugin, { services }: PluginThreadDeps): Promise<WebPlugin> {
  const { name } = loaded.plugin;
  const hooks = await setUp(loaded.plugin, services(name));
  return {
    name,
    filters: localFilters(loaded, hooks),
    routes: localRoutes(loaded, hooks),
    origin: originOfModule(name, loaded.url),
    close: () => Promise.resolve(),
  };
}

function localFilters({ plugin, settings }: LoadedPlugin, hooks: Hooks): PluginFilter[] {
  return hooks.filters.map(({ name, filter, options }) => {
    const hook: HookName = { plugin: plugin.name, hook: name };
    return {
      plugin: plugin.name,
      name,
      options,
      settings,
      run: (payload, call) =>
        runWithin(hook, options.timeoutMs, (signal) =>
          filter(copyJson(payload) as Parameters<typeof filter>[0], new LocalFilterContext(call, signal)),
        ),
    };
  });
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
  return hooks.routes.map(({ options, handle }) => {
    const hook: HookName = { plugin: plugin.name, hook: `${options.method} ${options.path}` };
    return {
      plugin: plugin.name,
      options,
      settings,
      handle: (request, context) =>
        runWithin(hook, ROUTE_MS, (signal) => handle(request, { ...context, signal: signal() })),
    };
  });
}

/**
 * Runs a hook, and rejects if it has not ended after `ms`; its signal is aborted then. Work that returns no promise has
 * ended: it costs no timer, and a signal only if it asks for one. The title of the process names the hook until then.
 *
 * @param work receives a function that returns its signal
 */
async function runWithin<T>(
  hook: HookName,
  ms: number,
  work: (signal: () => AbortSignal) => T | Promise<T>,
): Promise<T> {
  let abort: AbortController | undefined;
  beginHook(hook);
  try {
    const result = work(() => (abort ??= new AbortController()).signal);
    if (!isThenable(result)) return result;
    return await withTimeout(ms, result, () => {
      abort ??= new AbortController();
      abort.abort();
      throw new Error(`did not end within ${ms} ms`);
    });
  } finally {
    endHook(hook);
  }
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
