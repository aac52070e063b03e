import { StartError } from '../cluster/exit.ts';
import { PluginError } from '../plugins/loading/plugin-error.ts';
import { loadWebPlugins, type WebPluginDeps, type WebPlugins } from '../plugins/web/web-plugins.ts';

/** As `loadWebPlugins`. Throws `StartError` for a plugin that the server cannot run without. */
export async function requireWebPlugins(deps: WebPluginDeps): Promise<WebPlugins> {
  try {
    return await loadWebPlugins(deps);
  } catch (error) {
    throw error instanceof PluginError ? new StartError(error.message) : error;
  }
}
