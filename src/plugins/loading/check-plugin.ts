import { firstLine } from '../../lib/thrown.ts';
import type { CheckedPlugin, PluginEntry } from '../../config/plugin-entries.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import { setupServices } from '../services/setup-services.ts';
import { PluginThread } from '../thread/plugin-thread.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { checkTogether } from './check-together.ts';
import { LOADS_AT_ONCE } from './load.ts';
import { PluginNames } from './plugin-names.ts';

/**
 * Loads a plugin, checks its configuration and runs its setup in a thread, which is ended afterwards. Throws
 * `PluginError`.
 */
export async function checkPlugin(entry: PluginEntry, publicUrl: string): Promise<PluginInfo> {
  const thread = new PluginThread(entry, { publicUrl, services: () => setupServices });
  try {
    return await thread.start();
  } finally {
    await thread.stop();
  }
}

/** Checks each plugin as `checkPlugin` does, all together at first. The outcomes are in the order of the entries. */
export async function checkEach(
  entries: readonly PluginEntry[],
  publicUrl: string,
): Promise<readonly PromiseSettledResult<PluginInfo>[]> {
  const together = entries.length > 1 ? await checkTogether(entries) : [];
  const places = new Semaphore(LOADS_AT_ONCE);
  return Promise.allSettled(
    entries.map(async (entry, index) => together[index] ?? places.run(() => checkPlugin(entry, publicUrl))),
  );
}

/**
 * Checks the plugins of a configuration: each by itself, and that no two that are not optional have one name. Throws
 * `PluginError` unless the plugin is optional. Returns the entries with what was learned: `checked`, or `loadFailure`.
 */
export async function checkPlugins(entries: readonly PluginEntry[], publicUrl: string): Promise<PluginEntry[]> {
  const outcomes = await checkEach(entries, publicUrl);
  const names = new PluginNames();
  return entries.map((entry, index) => {
    const outcome = outcomes[index] as PromiseSettledResult<PluginInfo>;
    if (outcome.status === 'fulfilled') {
      if (entry.optional !== true) names.take(entry, outcome.value.name);
      return { ...entry, checked: checkedOf(outcome.value) };
    }
    if (entry.optional !== true) throw outcome.reason;
    return { ...entry, loadFailure: firstLine(outcome.reason) };
  });
}

function checkedOf({ name, isolated, hooks: { filters, routes, actions, queues } }: PluginInfo): CheckedPlugin {
  return {
    name,
    isolated,
    runsInWebWorkers: filters.length > 0 || routes.length > 0,
    runsInBackground:
      actions.length > 0 || queues.length > 0 || filters.some((filter) => filter.name.endsWith('.deliver')),
  };
}
