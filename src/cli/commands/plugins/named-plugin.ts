import { readFile } from 'node:fs/promises';
import { loadConfig } from '../../../config/load.ts';
import type { PluginEntry } from '../../../config/plugin-entries.ts';
import { checkPlugin } from '../../../plugins/loading/check-plugin.ts';
import { isShipped, locatePlugin, shippedNames } from '../../../plugins/loading/locate.ts';
import { PLUGIN_NAME } from '../../../plugins/loading/plugin-name.ts';
import { givenFolder } from '../../shared/given-folder.ts';
import { chooseFolder } from '../../shared/invocation.ts';

/**
 * The entry of the plugin with this name: one of the configuration, or a shipped one. Undefined if there is none. A
 * shipped plugin is known by what the entry uses. Of the others, those whose module contains the name are loaded first,
 * so that a command need not wait for plugins that it does not use.
 */
export async function namedPlugin(name: string, argv: readonly string[]): Promise<PluginEntry | undefined> {
  if (!PLUGIN_NAME.test(name)) return undefined;
  const plugins = configuredPlugins(givenFolder(argv));
  if (isShipped(name)) return plugins.find(({ use }) => use === name) ?? { use: name };
  const own = plugins.filter(({ use }) => !isShipped(use));
  const contain = await Promise.all(own.map((entry) => contains(entry, name)));
  for (const entry of own.filter((_, index) => contain[index])) if (await isNamed(entry, name)) return entry;
  const others = own.filter((_, index) => !contain[index]);
  const named = await Promise.all(others.map((entry) => isNamed(entry, name)));
  return others.find((_, index) => named[index]);
}

/** The entries of all plugins that `namedPlugin` finds: those of the configuration, and the other shipped ones. */
export function knownPlugins(argv: readonly string[]): readonly PluginEntry[] {
  const configured = configuredPlugins(givenFolder(argv));
  return [
    ...configured,
    ...shippedNames()
      .filter((name) => !configured.some(({ use }) => use === name))
      .map((use) => ({ use })),
  ];
}

function configuredPlugins(dir: string | undefined): readonly PluginEntry[] {
  try {
    return loadConfig({ dir: chooseFolder(dir), env: process.env, flags: {} }).plugins;
  } catch {
    // The command reports what is wrong with the configuration.
    return [];
  }
}

/** Whether the text of a plugin's module has the name as a string. A name that is computed is not found so. */
async function contains(entry: PluginEntry, name: string): Promise<boolean> {
  try {
    return new RegExp(`['"\`]${name}['"\`]`).test(await readFile(new URL(locatePlugin(entry)), 'utf8'));
  } catch {
    return false;
  }
}

/**
 * Whether the plugin of an entry has this name. Its options are left out: the command reports what is wrong with them.
 */
async function isNamed({ use, folder }: PluginEntry, name: string): Promise<boolean> {
  try {
    return (await checkPlugin({ use, enabled: false, ...(folder !== undefined && { folder }) }, '')).name === name;
  } catch {
    return false;
  }
}
