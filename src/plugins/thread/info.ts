import type { Hooks } from '../hooks.ts';
import type { LoadedPlugin } from '../load.ts';
import type { PluginInfo } from './messages.ts';

/** A loaded plugin and its hooks, without the functions. */
export function infoOf({ plugin, entry, settings }: LoadedPlugin, hooks: Hooks): PluginInfo {
  return {
    name: plugin.name,
    version: plugin.version,
    isolated: plugin.isolation === 'worker' || entry.isolation === 'worker',
    settings,
    hooks: {
      filters: hooks.filters.map(({ name, options }) => ({ name, options })),
      actions: hooks.actions.map(({ type, timeoutMs, whenKv, typesIn, ordered }) => ({ type, timeoutMs, whenKv, typesIn, ordered })),
      queues: hooks.queues.map(({ name, options }) => ({ name, options })),
      routes: hooks.routes.map(({ options }) => options),
      commands: hooks.commands.map(({ options }) => options),
    },
  };
}
