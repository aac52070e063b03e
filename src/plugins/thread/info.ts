import type { Hooks } from '../hooks.ts';
import { isIsolated, type LoadedPlugin } from '../loading/load.ts';
import type { PluginInfo } from './messages.ts';

/** A loaded plugin and its hooks, without the functions. */
export function infoOf(loaded: LoadedPlugin, hooks: Hooks): PluginInfo {
  const { plugin, settings } = loaded;
  return {
    name: plugin.name,
    version: plugin.version,
    isolated: isIsolated(loaded),
    settings,
    hooks: {
      filters: hooks.filters.map(({ name, options }) => ({ name, options })),
      actions: hooks.actions.map(({ type, timeoutMs, whenKv, typesIn, ordered }) => ({
        type,
        timeoutMs,
        whenKv,
        typesIn,
        ordered,
      })),
      queues: hooks.queues.map(({ name, options }) => ({ name, options })),
      routes: hooks.routes.map(({ options }) => options),
      commands: hooks.commands.map(({ options }) => options),
    },
  };
}
