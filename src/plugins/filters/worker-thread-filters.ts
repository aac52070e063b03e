import type { PluginFilter } from './filter-chain.ts';
import type { PluginThread } from '../thread/plugin-thread.ts';
import type { PluginInfo } from '../thread/messages.ts';

/** The filters of a plugin, each of which runs in the plugin's worker thread. */
export function workerThreadFilters({ name, settings, hooks }: PluginInfo, thread: PluginThread): PluginFilter[] {
  return hooks.filters.map((filter, index) => ({
    plugin: name,
    name: filter.name,
    options: filter.options,
    settings,
    run: (payload, call) => thread.run({ kind: 'filter', index }, payload, call, filter.options.timeoutMs),
  }));
}
