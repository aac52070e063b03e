import { existsSync, readFileSync } from 'node:fs';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { isShipped, manifestFile } from './locate.ts';
import type { PluginInfo } from '../thread/messages.ts';

/**
 * What the build writes beside a shipped plugin that is loaded by default (`dist/plugins/<name>.json`): what the plugin
 * registers without a configuration. `config` is the configuration that consists of defaults.
 */
type PluginManifest = Omit<PluginInfo, 'settings'> & { readonly config: unknown };

/**
 * What a plugin registers, without loading it, so that the start of a server need not wait for a plugin that may never
 * run. Undefined for a plugin without a manifest, for an entry that configures it, and for a server that runs from its
 * sources.
 */
export function infoFromManifest(entry: PluginEntry): PluginInfo | undefined {
  const isConfigured = Object.keys(entry).some((option) => option !== 'use');
  if (isConfigured || !isShipped(entry.use)) return undefined;
  const file = manifestFile(entry.use);
  if (!existsSync(file)) return undefined;
  const { config, ...info } = JSON.parse(readFileSync(file, 'utf8')) as PluginManifest;
  return { ...info, settings: { base: { enabled: true, priority: undefined, config }, environments: new Map() } };
}
