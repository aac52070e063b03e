import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { setupServices } from '../services/setup-services.ts';
import { PluginThread } from '../thread/plugin-thread.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { PluginNames } from './plugin-names.ts';

/** Loads a plugin, checks its configuration and runs its setup in a thread, which is ended afterwards. Throws `PluginError`. */
export async function checkPlugin(entry: PluginEntry, publicUrl: string): Promise<PluginInfo> {
  const thread = new PluginThread(entry, { publicUrl, services: () => setupServices });
  try {
    return await thread.start();
  } finally {
    await thread.stop();
  }
}

/**
 * Checks the plugins of a configuration: each by itself, and that no two that are not optional have one name. Throws `PluginError`
 * unless the plugin is optional; the result contains its entry with `loadFailure` then.
 */
export async function checkPlugins(entries: readonly PluginEntry[], publicUrl: string): Promise<PluginEntry[]> {
  const names = new PluginNames();
  const checked: PluginEntry[] = [];
  for (const entry of entries) {
    if (entry.optional === true) checked.push(await checkOptional(entry, publicUrl));
    else {
      names.take(entry, (await checkPlugin(entry, publicUrl)).name);
      checked.push(entry);
    }
  }
  return checked;
}

async function checkOptional(entry: PluginEntry, publicUrl: string): Promise<PluginEntry> {
  try {
    await checkPlugin(entry, publicUrl);
    return entry;
  } catch (error) {
    return { ...entry, loadFailure: firstLine(error) };
  }
}
