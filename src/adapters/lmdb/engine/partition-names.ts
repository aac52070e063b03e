import type { Database } from '../env/database.ts';
import { byteOrder } from './memtable.ts';
import type { StoreView } from './store-view.ts';

/**
 * Returns the names of partitions that start with `prefix`, after `after`, at most `limit`, in order. Reads one key of
 * the base table per name.
 */
export function partitionNames(
  { table }: Database,
  view: StoreView,
  prefix: string,
  after: string,
  limit: number,
): string[] {
  view.prepareTableRead();
  const matches = (name: string): boolean => name.startsWith(prefix) && name > after;
  const inMemtable = [...view.memtable.partitions()].filter(matches).sort(byteOrder);
  const names: string[] = [];
  let next = 0;
  const takeFromMemtable = (before: string | undefined): void => {
    while (
      names.length < limit &&
      next < inMemtable.length &&
      (before === undefined || (inMemtable[next] as string) < before)
    )
      names.push(inMemtable[next++] as string);
  };
  let start = after > prefix ? `${after}!` : prefix;
  while (names.length < limit) {
    const [key] = table.getKeys({ start, limit: 1 });
    const name = key?.slice(0, key.indexOf(' '));
    if (name === undefined || !name.startsWith(prefix)) break;
    takeFromMemtable(name);
    if (inMemtable[next] === name) next++;
    if (names.length < limit) names.push(name);
    // The keys of a partition follow its name after a space, and "!" is the next character: this is past all of them.
    start = `${name}!`;
  }
  takeFromMemtable(undefined);
  return names;
}
