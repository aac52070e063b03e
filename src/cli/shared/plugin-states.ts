import type { PluginEntry } from '../../config/plugin-entries.ts';
import { checkPlugin } from '../../plugins/loading/check-plugin.ts';
import { PluginError } from '../../plugins/loading/plugin-error.ts';
import { inNamingOrder, PluginNames } from '../../plugins/loading/plugin-names.ts';
import type { PluginInfo } from '../../plugins/thread/messages.ts';

/** The state of the plugin of an entry. */
export interface PluginState {
  readonly entry: PluginEntry;
  readonly state: 'enabled' | 'disabled' | 'failed';
  readonly info: PluginInfo | null;
  /** Why it failed; null otherwise. */
  readonly reason: string | null;
  /** The options of the plugin, if it failed because of them; otherwise empty. */
  readonly options: readonly string[];
}

/** The state of the plugin of each entry, in the order of the entries. Loads each in a thread; of several with one name, the server loads the first that takes it. */
export async function findPluginStates(entries: readonly PluginEntry[], publicUrl: string): Promise<readonly PluginState[]> {
  const states = new Map((await Promise.all(entries.map((entry) => find(entry, publicUrl)))).map((found) => [found.entry, found]));
  const names = new PluginNames();
  for (const entry of inNamingOrder(entries)) {
    const info = states.get(entry)?.info;
    if (!info) continue;
    try {
      names.take(entry, info.name);
    } catch (error) {
      states.set(entry, failed(entry, error));
    }
  }
  return [...states.values()];
}

async function find(entry: PluginEntry, publicUrl: string): Promise<PluginState> {
  try {
    const info = await checkPlugin(entry, publicUrl);
    const enabled = info.settings.base.enabled || [...info.settings.environments.values()].some((settings) => settings.enabled);
    return { entry, state: enabled ? 'enabled' : 'disabled', info, reason: null, options: [] };
  } catch (error) {
    return failed(entry, error);
  }
}

function failed(entry: PluginEntry, error: unknown): PluginState {
  if (!(error instanceof PluginError)) throw error;
  return { entry, state: 'failed', info: null, reason: error.message, options: error.options };
}
