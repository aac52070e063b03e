import { isAbsolute, resolve } from 'node:path';
import * as Type from 'typebox';
import type { Static } from 'typebox';

const PerEnvironment = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  priority: Type.Optional(Type.Integer()),
  config: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});

/** An entry of the option `plugins`. `loadConfig` makes a path in `use` absolute. */
export const PluginEntrySchema = Type.Object({
  /** The name of a shipped plugin, the name of a package, or the path of a module. */
  use: Type.String(),
  enabled: Type.Optional(Type.Boolean()),
  /** Whether the server starts without the plugin if it cannot be loaded. */
  optional: Type.Optional(Type.Boolean()),
  isolation: Type.Optional(Type.Literal('worker')),
  /** Whether its requests may go to private and local addresses. */
  allowPrivate: Type.Optional(Type.Boolean()),
  priority: Type.Optional(Type.Integer()),
  config: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  /** By slug. */
  environments: Type.Optional(Type.Record(Type.String(), PerEnvironment)),
});

/** An entry, with what is added to it when it is loaded. */
export interface PluginEntry extends Static<typeof PluginEntrySchema> {
  /** The folder that names of packages are resolved from. */
  folder?: string;
  /** Why the start could not load the plugin, which is optional. No process tries to load it again. */
  loadFailure?: string;
  /** What the start learned from loading the plugin; absent if it has not loaded it. */
  checked?: CheckedPlugin;
}

/** What processes need not load a plugin for. */
export interface CheckedPlugin {
  readonly name: string;
  /** Whether its hooks run in a thread of its own. */
  readonly isolated: boolean;
  /** Whether it has hooks that web workers run: filters and routes. */
  readonly runsInWebWorkers: boolean;
  /** Whether it has hooks that the background worker runs: actions, queues and filters of deliveries. */
  readonly runsInBackground: boolean;
}

/** The part of an entry about one environment. */
export type PluginEnvironmentEntry = Static<typeof PerEnvironment>;

const flags = ['enabled', 'optional', 'allowPrivate'] as const;
const entryNames = ['use', ...flags, 'isolation', 'priority', 'config', 'environments'];
const environmentNames = ['enabled', 'priority', 'config'];

/** A fault of a list of entries: the path below `plugins`, and the reason to follow it. */
export interface EntryFault {
  readonly path: string;
  readonly reason: string;
}

/** The first fault of a value of the option `plugins`; null if it is valid. */
export function entriesFault(value: unknown): EntryFault | null {
  if (!Array.isArray(value)) return { path: '', reason: 'must be a list of plugins such as [{"use": "webhook"}]' };
  for (const [index, entry] of value.entries()) {
    const fault = entryFault(entry);
    if (fault !== null) return { path: `[${index}]${fault.path === '' ? '' : `.${fault.path}`}`, reason: fault.reason };
  }
  return null;
}

function entryFault(entry: unknown): EntryFault | null {
  if (!isObject(entry)) return { path: '', reason: 'must be an object such as {"use": "webhook"}' };
  const unknown = Object.keys(entry).find((name) => !entryNames.includes(name));
  if (unknown !== undefined)
    return { path: unknown, reason: `is not an option of a plugin; the options are ${entryNames.join(', ')}` };
  if (typeof entry['use'] !== 'string' || entry['use'].trim() === '')
    return {
      path: 'use',
      reason:
        'must be the name of a shipped plugin, the name of a package, or the path of a module that begins with ./',
    };
  for (const name of flags)
    if (entry[name] !== undefined && typeof entry[name] !== 'boolean')
      return { path: name, reason: 'must be true or false' };
  if (entry['isolation'] !== undefined && entry['isolation'] !== 'worker')
    return { path: 'isolation', reason: 'must be "worker"' };
  const fault = sharedFault(entry);
  if (fault !== null) return fault;
  const environments = entry['environments'];
  if (environments === undefined) return null;
  if (!isObject(environments))
    return { path: 'environments', reason: 'must be an object with the slugs of environments as names' };
  for (const [slug, settings] of Object.entries(environments)) {
    const path = `environments.${slug}`;
    if (!isObject(settings)) return { path, reason: 'must be an object' };
    const other = Object.keys(settings).find((name) => !environmentNames.includes(name));
    if (other !== undefined)
      return {
        path: `${path}.${other}`,
        reason: `is not an option of a plugin in an environment; the options are ${environmentNames.join(', ')}`,
      };
    if (settings['enabled'] !== undefined && typeof settings['enabled'] !== 'boolean')
      return { path: `${path}.enabled`, reason: 'must be true or false' };
    const inner = sharedFault(settings);
    if (inner !== null) return { path: `${path}.${inner.path}`, reason: inner.reason };
  }
  return null;
}

function sharedFault({ priority, config }: Readonly<Record<string, unknown>>): EntryFault | null {
  if (priority !== undefined && !Number.isSafeInteger(priority))
    return { path: 'priority', reason: 'must be a whole number' };
  if (config !== undefined && !isObject(config))
    return { path: 'config', reason: 'must be an object with the options of the plugin' };
  return null;
}

/** Entries from the text of a variable: JSON, or names separated by commas. Undefined if it is neither. */
export function parseEntries(text: string): PluginEntry[] | undefined {
  if (!/^\s*\[/.test(text))
    return text
      .split(',')
      .map((use) => ({ use: use.trim() }))
      .filter(({ use }) => use !== '');
  try {
    const value: unknown = JSON.parse(text);
    return entriesFault(value) === null ? (value as PluginEntry[]) : undefined;
  } catch {
    return undefined;
  }
}

/** An entry with what depends on the folder of config.json. */
export function resolveEntry(entry: PluginEntry, folder: string): PluginEntry {
  const { use } = entry;
  return { ...entry, use: use.startsWith('.') || isAbsolute(use) ? resolve(folder, use) : use, folder };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
