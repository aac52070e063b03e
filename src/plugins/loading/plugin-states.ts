import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { checkEach } from './check-plugin.ts';
import type { LoadedEntry } from './load-entries.ts';
import { PluginError } from './plugin-error.ts';

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

/** The state of the plugin of each entry, in the order of the entries, as the server would load them. */
export async function findPluginStates(
  entries: readonly PluginEntry[],
  publicUrl: string,
): Promise<readonly PluginState[]> {
  return (await checkEach(entries, publicUrl)).map(stateOf);
}

function stateOf({ entry, plugin, failure }: LoadedEntry<PluginInfo>): PluginState {
  if (failure !== null) {
    if (!(failure instanceof PluginError)) throw failure;
    return { entry, state: 'failed', info: null, reason: failure.message, options: failure.options };
  }
  const { base, environments } = plugin.settings;
  const enabled = base.enabled || [...environments.values()].some((settings) => settings.enabled);
  return { entry, state: enabled ? 'enabled' : 'disabled', info: plugin, reason: null, options: [] };
}
