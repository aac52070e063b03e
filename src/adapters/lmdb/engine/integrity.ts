import type { Database as Table } from 'lmdb';
import { DataError } from '../../../model/errors.ts';
import type { StoreFault } from '../../../ports/store-operations.ts';
import { textOfValue } from '../env/checked-value.ts';
import type { Database } from '../env/database.ts';
import { entriesOf } from '../env/table-entries.ts';
import { decodeEventChunk } from './event-chunk.ts';

/** A checkpoint during a walk changes the number of entries, so it is compared again. */
const ATTEMPTS = 3;

/**
 * Reads every entry of the base table and of the event chunks, and compares it with its checksum. Damage of LMDB's own
 * pages can hide entries that are whole: so every entry must also be found by its key, come in order, and be counted.
 *
 * @param requireOpen throws if the database has been closed; called before each use of it
 */
export async function* findFaults(
  { table, eventChunks }: Database,
  requireOpen: () => void,
): AsyncIterable<StoreFault> {
  yield* faultsOf({ name: 'base table', table, read: textOfValue }, requireOpen);
  yield* faultsOf({ name: 'event chunks', table: eventChunks, read: decodeEventChunk }, requireOpen);
}

/** A table, and what throws a `DataError` if an entry of it is damaged. */
interface CheckedTable<V> {
  readonly name: string;
  readonly table: Table<V, string>;
  readonly read: (key: string, value: V) => unknown;
}

async function* faultsOf<V>(
  { name, table, read }: CheckedTable<V>,
  requireOpen: () => void,
): AsyncIterable<StoreFault> {
  let counts = '';
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const faults: StoreFault[] = [];
    let count = 0;
    let last = '';
    for await (const { key, value } of entriesOf(table, requireOpen)) {
      requireOpen();
      if (key <= last) {
        faults.push({ name: `${name}, ${key}`, fault: 'is not in order' });
        break;
      }
      last = key;
      count++;
      if (table.get(key) === undefined) faults.push({ name: `${name}, ${key}`, fault: 'cannot be found by its key' });
      else if (!isWhole(() => read(key, value))) faults.push({ name: `${name}, ${key}`, fault: 'is corrupted' });
    }
    yield* faults;
    requireOpen();
    const { entryCount } = table.getStats() as { entryCount: number };
    if (faults.length > 0 || entryCount === count) return;
    counts = `has ${entryCount} entries, of which ${count} can be read`;
  }
  yield { name, fault: counts };
}

function isWhole(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof DataError) return false;
    throw error;
  }
}
