import { findPluginStates, type PluginState } from '../shared/plugin-states.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';

/** Loads the plugins of the configuration, each in a thread as the server does. Returns nothing if it names none. */
export async function checkConfiguredPlugins({ config: { plugins, publicUrl } }: CheckedFolder): Promise<Check[]> {
  const missing = (await findPluginStates(plugins, publicUrl)).filter(({ state }) => state === 'failed');
  return plugins.length > 0 && missing.length === 0 ? [ok('plugins', `all configured plugins can be loaded: ${plugins.map(({ use }) => use).join(', ')}`)] : missing.map(checkOf);
}

function checkOf({ entry, reason }: PluginState): Check {
  const remedy = 'Correct the module or its entry in the option plugins, then restart the server. `collab plugin check` shows all plugins.';
  return entry.optional === true ? warn('plugins', `${reason}; it is optional, so the server runs without it`, remedy) : fail('plugins', `${reason}; the server does not start without it`, remedy);
}
