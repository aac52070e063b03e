import type { CheckedPlugin, PluginEntry } from '../../config/plugin-entries.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import { asError } from '../../lib/thrown.ts';
import type { PluginInfo } from '../thread/messages.ts';
import { infoFromManifest } from './manifest.ts';
import { PluginError } from './plugin-error.ts';

/** How many plugins are loaded at once. More would wait for each other, and could pass `LOAD_MS` on a busy machine. */
const LOADS_AT_ONCE = 4;

/** What became of an entry of the option `plugins`: its plugin, or why that cannot be used. */
export type LoadedEntry<P> =
  | { readonly entry: PluginEntry; readonly plugin: P; readonly failure: null }
  | { readonly entry: PluginEntry; readonly plugin: null; readonly failure: Error };

/** What `loadEntries` needs to know of a plugin. */
interface Loadable {
  readonly name: string;
  /** Called if the plugin was loaded and is not used after all. */
  close?(): Promise<void>;
}

/**
 * Loads the plugins of a configuration, up to four at once, and sees to it that no two have one name: of those that
 * have, the first one takes it that is not optional, or else the first one. Never rejects: it is the caller who decides
 * which failures it bears.
 *
 * @param load returns null for a plugin that has no hooks that run here; its name is taken all the same. Not called for
 *   an entry that the start could not load
 * @returns in the order of the entries
 */
export async function loadEntries<P extends Loadable | null>(
  entries: readonly PluginEntry[],
  load: (entry: PluginEntry) => Promise<P>,
): Promise<LoadedEntry<P>[]> {
  const places = new Semaphore(LOADS_AT_ONCE);
  const found = new Map<PluginEntry, LoadedEntry<P>>();
  const loadOne = async (entry: PluginEntry): Promise<void> => {
    try {
      if (entry.loadFailure !== undefined) throw new Error(entry.loadFailure);
      found.set(entry, { entry, plugin: await places.run(() => load(entry)), failure: null });
    } catch (error) {
      found.set(entry, { entry, plugin: null, failure: asError(error) });
    }
  };
  await Promise.all(entries.map(loadOne));
  const taken = new Set<string>();
  for (const entry of inNamingOrder(entries)) {
    const { plugin, failure } = found.get(entry) as LoadedEntry<P>;
    if (failure !== null) continue;
    const name = plugin?.name ?? knownOf(entry)?.name ?? entry.use;
    if (taken.has(name)) {
      await plugin?.close?.();
      found.set(entry, { entry, plugin: null, failure: sameName(entry, name) });
    }
    taken.add(name);
  }
  return entries.map((entry) => found.get(entry) as LoadedEntry<P>);
}

/** What is known of the plugin of an entry without loading it: from the start, or from its manifest. */
export function knownOf(entry: PluginEntry): CheckedPlugin | undefined {
  if (entry.checked !== undefined) return entry.checked;
  const info = infoFromManifest(entry);
  return info === undefined ? undefined : knownFrom(info);
}

/** What other processes need to know of a plugin that was loaded. */
export function knownFrom({ name, isolated, hooks }: PluginInfo): CheckedPlugin {
  const { filters, routes, actions, queues } = hooks;
  return {
    name,
    isolated,
    runsInWebWorkers: filters.length > 0 || routes.length > 0,
    runsInBackground:
      actions.length > 0 || queues.length > 0 || filters.some((filter) => isDeliveryFilter(filter.name)),
  };
}

/** Whether a filter is one of deliveries, which the background worker runs; web workers run the others. */
export function isDeliveryFilter(name: string): boolean {
  return name.endsWith('.deliver');
}

/** Optional entries come last, so that none of them takes a name from a plugin that the server needs. */
function inNamingOrder(entries: readonly PluginEntry[]): readonly PluginEntry[] {
  return entries.toSorted((a, b) => Number(a.optional === true) - Number(b.optional === true));
}

function sameName({ use }: PluginEntry, name: string): PluginError {
  return new PluginError(use, `another entry of plugins has a plugin that is named ${name} too; remove one of the two`);
}
