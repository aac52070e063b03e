import type { Database } from '../env/database.ts';
import { byteOrder } from './memtable.ts';
import type { StoreView } from './store-view.ts';

/** The names of partitions that start with `prefix`, past `after`, at most `limit`, in order: one look into the tree each. */
export function partitionNames({ table }: Database, view: StoreView, prefix: string, after: string, limit: number): string[] {
  view.openTable();
  const { memtable } = view;
  const wanted = (name: string): boolean => name.startsWith(prefix) && name > after;
  const unfolded = [...memtable.partitions()].filter(wanted).sort(byteOrder);
  const names: string[] = [];
  let next = 0;
  const takeUnfolded = (before: string | undefined): void => {
    while (names.length < limit && next < unfolded.length && (before === undefined || (unfolded[next] as string) < before)) names.push(unfolded[next++] as string);
  };
  let start = after > prefix ? `${after}!` : prefix;
  while (names.length < limit) {
    const [key] = table.getKeys({ start, limit: 1 });
    const name = key?.slice(0, key.indexOf(' '));
    if (name === undefined || !name.startsWith(prefix)) break;
    takeUnfolded(name);
    if (unfolded[next] === name) next++;
    if (names.length < limit) names.push(name);
    // No name has a character below this one, so it is past every key of the partition.
    start = `${name}!`;
  }
  takeUnfolded(undefined);
  return names;
}
