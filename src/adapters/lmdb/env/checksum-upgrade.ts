import { asBinary, type Database as Table, type RootDatabase } from 'lmdb';
import { type CheckedValue, encodeValue } from './checked-value.ts';

/** Name of the key of the base table up to which every record has a checksum; absent once all have one. */
export const UNCHECKED = 'unchecked';
/** Records per transaction: a few milliseconds, so that checkpoints wait for little. */
const STEP = 1_000;

/** The tables that this needs. */
interface Tables {
  readonly root: RootDatabase;
  readonly table: Table<CheckedValue, string>;
  readonly meta: Table<string, string>;
}

/**
 * Adds checksums to the next records of a base table that an older format wrote. A migration of all records at once
 * would make a start take minutes, and one transaction hold all of them in memory. A crash between steps loses nothing:
 * each is one transaction with the key at which the next one begins.
 *
 * @returns whether every record has a checksum
 */
export async function upgradeChecksums({ root, table, meta }: Tables): Promise<boolean> {
  if (meta.get(UNCHECKED) === undefined) return true;
  return root.transaction(() => {
    const from = meta.get(UNCHECKED);
    if (from === undefined) return true;
    const entries = [...table.getRange({ ...(from !== '' && { start: from }), limit: STEP })];
    for (const { key, value } of entries) {
      if (value.keySum === null)
        void table.put(key, asBinary(encodeValue(key, Buffer.from(value.text))) as unknown as CheckedValue);
    }
    const last = entries.at(-1)?.key;
    if (entries.length < STEP || last === undefined) {
      void meta.remove(UNCHECKED);
      return true;
    }
    void meta.put(UNCHECKED, last);
    return false;
  });
}
