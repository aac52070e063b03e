import type { PluginEntry } from '../../config/plugin-entries.ts';
import { PluginError } from './plugin-error.ts';

/**
 * The entries in the order in which they take their names: those that are optional come last, so that a name is not
 * taken from one that the server needs.
 */
export function inNamingOrder(entries: readonly PluginEntry[]): readonly PluginEntry[] {
  return entries.toSorted((a, b) => Number(a.optional === true) - Number(b.optional === true));
}

/** The names of the plugins of a server, of which no two may have the same. */
export class PluginNames {
  readonly #taken = new Set<string>();

  /** Takes the name of a plugin that was loaded. Throws `PluginError` if another entry has taken it. */
  take({ use }: PluginEntry, name: string): void {
    if (this.#taken.has(name))
      throw new PluginError(
        use,
        `another entry of plugins has a plugin that is named ${name} too; remove one of the two`,
      );
    this.#taken.add(name);
  }
}
