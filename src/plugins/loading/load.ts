import type { TSchema } from 'typebox';
import { firstLine } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { importModule } from '../../lib/process/import-module.ts';
import { API_VERSION, type Plugin } from '../api.ts';
import { isShipped, locatePlugin, provideApi } from './locate.ts';
import { PLUGIN_NAME } from './plugin-name.ts';
import { PluginError } from './plugin-error.ts';
import { type PluginSettings, readSettings } from './settings.ts';

/** A plugin whose module was loaded, with the settings of its entry. */
export interface LoadedPlugin {
  readonly entry: PluginEntry;
  readonly plugin: Plugin;
  /** URL of the module. */
  readonly url: string;
  readonly settings: PluginSettings;
}

/** How long a plugin may take to load, and to set itself up: much longer than on a busy machine. */
export const LOAD_MS = 30_000;

const MODULE_HINT =
  '; plugins are ES modules: name the file .mjs, or set "type": "module" in the package.json of its folder';

/** Loads the module of an entry and checks the configuration. Throws `PluginError`. */
export async function loadPlugin(entry: PluginEntry): Promise<LoadedPlugin> {
  const url = locatePlugin(entry);
  provideApi(url);
  const plugin = checkPlugin(
    entry.use,
    await withTimeout(LOAD_MS, importDefault(entry.use, url), () => failLoading(entry.use)),
  );
  return { entry, plugin, url, settings: readSettings(plugin.name, plugin.config, entry) };
}

/** Whether a plugin runs in a thread of its own, because it asks for it or its entry does. */
export function isIsolated({ plugin, entry }: Pick<LoadedPlugin, 'plugin' | 'entry'>): boolean {
  return plugin.isolation === 'worker' || entry.isolation === 'worker';
}

/** Throws the fault of a plugin that takes longer than `LOAD_MS` to load. */
export function failLoading(use: string): never {
  throw new PluginError(use, `did not load within ${LOAD_MS / 1_000} s`);
}

async function importDefault(use: string, url: string): Promise<unknown> {
  try {
    return ((await importModule(url)) as { default?: unknown }).default;
  } catch (error) {
    throw new PluginError(
      use,
      `its module failed to load: ${firstLine(error)}${isModuleReadAsScript(error) ? MODULE_HINT : ''}`,
    );
  }
}

/** Whether Node has read a module as CommonJS, in which `import` and `export` are syntax errors. */
function isModuleReadAsScript(error: unknown): boolean {
  return error instanceof SyntaxError && /Cannot use import statement|Unexpected token 'export'/.test(error.message);
}

function checkPlugin(use: string, value: unknown): Plugin {
  if (typeof value !== 'object' || value === null)
    throw new PluginError(use, 'its module has no default export made by definePlugin');
  const { name, version, apiVersion, config, setup, isolation } = value as Partial<Record<keyof Plugin, unknown>>;
  if (apiVersion !== API_VERSION)
    throw new PluginError(
      use,
      `apiVersion is ${JSON.stringify(apiVersion) ?? 'missing'}, but this version of Collab takes ` +
        `${API_VERSION}; install a matching version of the plugin`,
    );
  if (typeof name !== 'string' || !PLUGIN_NAME.test(name))
    throw new PluginError(use, `name must match ${PLUGIN_NAME.source}`);
  if (name !== use && isShipped(name))
    throw new PluginError(use, `its name ${name} is that of a plugin that ships with Collab; give it another name`);
  if (typeof version !== 'string' || version === '')
    throw new PluginError(name, 'version must be a string such as 1.0.0');
  if (!isObjectSchema(config)) throw new PluginError(name, 'config must be a schema made by Type.Object');
  if (isolation !== undefined && isolation !== 'worker') throw new PluginError(name, 'isolation must be "worker"');
  if (typeof setup !== 'function') throw new PluginError(name, 'setup must be a function');
  return value as Plugin;
}

function isObjectSchema(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'object';
}
