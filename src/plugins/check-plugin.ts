import type { PluginEntry } from '../config/plugin-entries.ts';
import { setupServices } from './setup-services.ts';
import { PluginThread } from './plugin-thread.ts';
import type { PluginInfo } from './thread/messages.ts';
import { PluginError } from './plugin-error.ts';

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
  const names = new Set<string>();
  for (const entry of entries) {
    if (entry.optional === true) continue;
    const { name } = await checkPlugin(entry, publicUrl);
    if (names.has(name)) throw sameName(entry, name);
    names.add(name);
  }
}

/** The fault of an entry whose plugin has the name of another one. */
export function sameName({ use }: PluginEntry, name: string): PluginError {
  return new PluginError(use, `another entry of plugins has a plugin that is named ${name} too; remove one of the two`);
}
