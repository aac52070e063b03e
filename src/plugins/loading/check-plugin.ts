import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { setupServices } from '../services/setup-services.ts';
import { PluginThread } from '../thread/plugin-thread.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { checkTogether } from './check-together.ts';
import { knownFrom, loadEntries, type LoadedEntry } from './load-entries.ts';

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

/** Checks each plugin as `checkPlugin` does, all together at first, and their names. As `loadEntries`. */
export async function checkEach(
  entries: readonly PluginEntry[],
  publicUrl: string,
): Promise<readonly LoadedEntry<PluginInfo>[]> {
  const together = entries.length > 1 ? await checkTogether(entries) : [];
  const infos = new Map(entries.map((entry, index) => [entry, together[index]]));
  return loadEntries(entries, async (entry) => infos.get(entry) ?? checkPlugin(entry, publicUrl));
}

/**
 * Checks the plugins of a configuration: each by itself, and that no two have one name. Throws `PluginError` unless the
 * plugin is optional. Returns the entries with what was learned: `checked`, or `loadFailure`.
 */
export async function checkPlugins(entries: readonly PluginEntry[], publicUrl: string): Promise<PluginEntry[]> {
  return (await checkEach(entries, publicUrl)).map(({ entry, plugin, failure }) => {
    if (failure === null) return { ...entry, checked: knownFrom(plugin) };
    if (entry.optional !== true) throw failure;
    return { ...entry, loadFailure: firstLine(failure) };
  });
}
