import type { Key, RootDatabase } from 'lmdb';

/** An occupied slot in the reader table of an LMDB environment. */
export interface ReaderSlot {
  readonly pid: number;
  /** Number of the transaction whose snapshot it holds; null while it holds none. */
  readonly snapshot: number | null;
}

/**
 * Lists the reader slots of other processes: one per thread that has read, for as long as it has the LMDB environment
 * open.
 */
export function otherReaders<V, K extends Key>(lmdbEnv: RootDatabase<V, K>): ReaderSlot[] {
  // One line per slot: process, thread, and transaction, or "-" if it holds no snapshot.
  const fields = lmdbEnv
    .readerList()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const slots = fields.filter(
    ([pid, , transaction]) => /^\d+$/.test(pid ?? '') && /^(?:\d+|-)$/.test(transaction ?? ''),
  );
  return slots
    .map(([pid, , transaction]): ReaderSlot => ({
      pid: Number(pid),
      snapshot: transaction === '-' ? null : Number(transaction),
    }))
    .filter(({ pid }) => pid !== process.pid);
}

/** The number of the last transaction that was committed to an LMDB environment, by any process. */
export function lastTransaction<V, K extends Key>(lmdbEnv: RootDatabase<V, K>): number {
  // The types of lmdb-js leave out what `getStats` returns.
  return (lmdbEnv.getStats() as { readonly lastTxnId: number }).lastTxnId;
}
