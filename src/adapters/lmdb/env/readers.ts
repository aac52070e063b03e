import type { Key, RootDatabase } from 'lmdb';

/** A place among the readers of an LMDB environment. */
export interface Reader {
  readonly pid: number;
  /** Number of the transaction whose snapshot it holds; null while it holds none. */
  readonly snapshot: number | null;
}

/** The readers of an environment that other processes have: one a thread that has read, for as long as it has it open. */
export function otherReaders<V, K extends Key>(environment: RootDatabase<V, K>): Reader[] {
  // A line a reader: process, thread, and its transaction, or - for one at rest.
  const fields = environment.readerList().split('\n').map((line) => line.trim().split(/\s+/));
  const readers = fields.filter(([pid, , transaction]) => /^\d+$/.test(pid ?? '') && /^(?:\d+|-)$/.test(transaction ?? ''));
  return readers
    .map(([pid, , transaction]): Reader => ({ pid: Number(pid), snapshot: transaction === '-' ? null : Number(transaction) }))
    .filter(({ pid }) => pid !== process.pid);
}
