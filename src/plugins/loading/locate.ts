import { existsSync, readdirSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { isAbsolute, join, parse } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { closestMatch } from '../../lib/closest-match.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { PLUGIN_NAME } from './plugin-name.ts';
import { PluginError } from './plugin-error.ts';

/** Shipped plugins that are loaded without being named in the configuration. */
const DEFAULTS: readonly string[] = ['webhook'];
const fromSource = import.meta.url.endsWith('.ts');

/** The entries of the configuration, and those of the plugins that are loaded by default. */
export function withDefaults(entries: readonly PluginEntry[]): readonly PluginEntry[] {
  const missing = DEFAULTS.filter((name) => existsSync(shippedFile(name)) && !entries.some(({ use }) => use === name));
  return [...entries, ...missing.map((use) => ({ use }))];
}

/** Whether a plugin with this name ships with Collab. */
export function isShipped(name: string): boolean {
  return PLUGIN_NAME.test(name) && existsSync(shippedFile(name));
}

/**
 * The path of the manifest that the build writes beside a shipped plugin; most have none, and none has one in the
 * sources.
 */
export function manifestFile(name: string): string {
  const { dir, name: base } = parse(shippedFile(name));
  return join(dir, `${base}.json`);
}

/** The URL of the module of an entry. Throws `PluginError` if there is none. */
export function locatePlugin({ use, folder = process.cwd() }: PluginEntry): string {
  if (isShipped(use)) return pathToFileURL(shippedFile(use)).href;
  const from = nodeModule.createRequire(join(folder, 'config.json'));
  try {
    return pathToFileURL(from.resolve(use)).href;
  } catch {
    if (isAbsolute(use)) throw new PluginError(use, 'there is no such module');
    const near = closestMatch(use, shippedNames());
    throw new PluginError(
      use,
      `is neither a shipped plugin nor a package installed in ${folder}; ${near === undefined ? 'a path must begin with ./' : `did you mean ${near}?`}`,
    );
  }
}

/** The names of the shipped plugins. */
export function shippedNames(): readonly string[] {
  return [...new Set(readdirSync(shippedFolder()).map((file) => parse(file).name))].filter(isShipped);
}

/** Whether `collab/plugin` resolves in this thread wherever it is imported. */
let isProvided = false;

/**
 * Makes `collab/plugin` available to a module from whose folder it cannot be resolved, such as one beside config.json.
 */
export function provideApi(moduleUrl: string): void {
  if (isProvided) return;
  try {
    nodeModule.createRequire(moduleUrl).resolve('collab/plugin');
  } catch {
    isProvided = true;
    const api = new URL(fromSource ? '../api.ts' : '../plugin/index.js', import.meta.url).href;
    nodeModule.register(
      `data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) => name === 'collab/plugin' ? { url: ${JSON.stringify(api)}, shortCircuit: true } : next(name, context);`)}`,
    );
  }
}

/** The module of a shipped plugin, in the build or the sources. */
function shippedFile(name: string): string {
  return join(shippedFolder(), fromSource ? `${name}/index.ts` : `${name}.js`);
}

function shippedFolder(): string {
  return fileURLToPath(new URL(fromSource ? '../../../plugins/' : '../plugins/', import.meta.url));
}
