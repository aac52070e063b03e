import { fileURLToPath } from 'node:url';

/** Where the code of a loaded plugin is. */
export interface PluginOrigin {
  readonly plugin: string;
  /** A file URL: of the folder of the plugin, ending with a slash, or of its module. */
  readonly url: string;
}

const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//;

/**
 * The origin of a plugin with this module: its package, or the folder of the module. If that folder contains Collab
 * too, such as a project that installs it, only the module itself.
 */
export function originOfModule(plugin: string, moduleUrl: string): PluginOrigin {
  const folder = PACKAGE.exec(moduleUrl)?.[0] ?? new URL('.', moduleUrl).href;
  return { plugin, url: import.meta.url.startsWith(folder) ? moduleUrl : folder };
}

/** The plugin whose code is in the stack of an error; null if there is none, or no stack. */
export function pluginInStack(error: unknown, origins: readonly PluginOrigin[]): string | null {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  return origins.find(({ url }) => stack.includes(url) || stack.includes(fileURLToPath(url)))?.plugin ?? null;
}
