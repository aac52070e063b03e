import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { checkPlugin } from '../../plugins/check-plugin.ts';
import { type Check, fail, ok, type Subject, warn } from './check.ts';

/** Loads the plugins of the configuration, each in a thread as the server does. Returns nothing if it names none. */
export async function checkConfiguredPlugins({ config: { plugins, publicUrl } }: Subject): Promise<Check[]> {
  const checks = await Promise.all(plugins.map((entry) => checkEntry(entry, publicUrl)));
  const missing = checks.filter((check) => check !== null);
  return plugins.length > 0 && missing.length === 0 ? [ok('plugins', `all that the configuration names can be loaded: ${plugins.map(({ use }) => use).join(', ')}`)] : missing;
}

/** Null if the plugin can be loaded. */
async function checkEntry(entry: PluginEntry, publicUrl: string): Promise<Check | null> {
  try {
    await checkPlugin(entry, publicUrl);
    return null;
  } catch (error) {
    const reason = firstLine(error);
    const remedy = 'Correct the module or its entry in the option plugins, then restart the server. `collab plugin check` shows all plugins.';
    return entry.optional === true ? warn('plugins', `${reason}; it is optional, so the server runs without it`, remedy) : fail('plugins', `${reason}; the server does not start without it`, remedy);
  }
}
