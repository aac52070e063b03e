import { firstLine } from '../../lib/thrown.ts';
import { findUnknownEnvironments } from '../../plugins/loading/unknown-environments.ts';
import { hasStore } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { findPluginStates, type PluginState } from '../../plugins/loading/plugin-states.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';

/**
 * Loads the plugins of the configuration, each in a thread as the server does, and checks that the environments that it
 * names for them exist. Returns nothing if it names no plugins.
 */
export async function checkConfiguredPlugins(folder: CheckedFolder): Promise<Check[]> {
  const { plugins, publicUrl } = folder.config;
  const missing = (await findPluginStates(plugins, publicUrl)).filter(({ state }) => state === 'failed');
  const loaded =
    plugins.length > 0 && missing.length === 0
      ? [ok('plugins', `all configured plugins can be loaded: ${plugins.map(({ use }) => use).join(', ')}`)]
      : missing.map(checkOf);
  return [...loaded, ...(await checkEnvironments(folder))];
}

async function checkEnvironments({ config }: CheckedFolder): Promise<Check[]> {
  if (!hasStore(config) || config.plugins.every(({ environments }) => environments === undefined)) return [];
  try {
    const unknown = await useStore(config, (ctx) => findUnknownEnvironments(ctx, config.plugins));
    return unknown.map(({ use, slugs }) =>
      warn(
        'plugins',
        `the entry of ${use} has options for environments that do not exist: ${slugs.join(', ')}`,
        'Correct the slugs under environments in the option plugins, or create the environments. `collab env list` shows those that exist.',
      ),
    );
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    return [
      warn(
        'plugins',
        `the environments of plugins cannot be checked: ${firstLine(error)}`,
        'Correct what the other checks report, then run this again.',
      ),
    ];
  }
}

function checkOf({ entry, reason }: PluginState): Check {
  const remedy =
    'Correct the module or its entry in the option plugins, then restart the server. `collab plugin check` shows all plugins.';
  return entry.optional === true
    ? warn('plugins', `${reason}; it is optional, so the server runs without it`, remedy)
    : fail('plugins', `${reason}; the server does not start without it`, remedy);
}
