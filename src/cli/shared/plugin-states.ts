import type { PluginEntry } from '../../config/plugin-entries.ts';
import { checkEach } from '../../plugins/loading/check-plugin.ts';
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

/**
 * The state of the plugin of each entry, in the order of the entries. Of several with one name, the server loads the
 * first that takes it.
 */
export async function findPluginStates(
  entries: readonly PluginEntry[],
  publicUrl: string,
): Promise<readonly PluginState[]> {
  const outcomes = await checkEach(entries, publicUrl);
  const states = new Map(
    entries.map((entry, index) => [entry, stateOf(entry, outcomes[index] as PromiseSettledResult<PluginInfo>)]),
  );
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

function stateOf(entry: PluginEntry, outcome: PromiseSettledResult<PluginInfo>): PluginState {
  if (outcome.status === 'rejected') return failed(entry, outcome.reason);
  const info = outcome.value;
  const enabled =
    info.settings.base.enabled || [...info.settings.environments.values()].some((settings) => settings.enabled);
  return { entry, state: enabled ? 'enabled' : 'disabled', info, reason: null, options: [] };
}

function failed(entry: PluginEntry, error: unknown): PluginState {
  if (!(error instanceof PluginError)) throw error;
  return { entry, state: 'failed', info: null, reason: error.message, options: error.options };
}
