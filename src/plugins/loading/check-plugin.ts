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

/** Checks the enabled plugins of a configuration that are not optional: each by itself, and that no two have one name. Throws `PluginError`. */
export async function checkPlugins(entries: readonly PluginEntry[], publicUrl: string): Promise<void> {
  const names = new PluginNames();
  for (const entry of entries) if (entry.optional !== true) names.take(entry, (await checkPlugin(entry, publicUrl)).name);
}
