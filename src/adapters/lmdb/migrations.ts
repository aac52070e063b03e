import type { Database as Table } from 'lmdb';
import { appendToLog, endOf, hasRoom } from './commit-log.ts';
import type { Database } from './database.ts';

type Migrated = Omit<Database, 'epoch'>;

/**
 * `migrations[n]` brings a database of format n to n + 1: first, outside of any transaction, it opens what it needs, then
 * the step that it returns does the work inside a write transaction of the tree. A step may be done once more from the start.
 */
export const migrations: Readonly<Record<number, (database: Migrated) => () => void>> = { 1: moveLogOut };

/** Format 1 had the log as a table beside the tree, its pieces without a mark; a commit's frame had its position in it. */
const RING_PIECES_1 = 32_768;
const PIECE_BYTES_1 = 2_000;
const FRAME_BYTES_1 = 12;
const FRAME_BYTES_2 = 4;

/** To format 2: the log becomes an environment of its own. */
function moveLogOut(database: Migrated): () => void {
  const old = database.root.openDB<Buffer, number>('log', { encoding: 'binary', keyEncoding: 'uint32' });
  return () => {
    const folded = Number(database.meta.get('folded') ?? 0);
    const batches = batchesOf(old, folded);
    database.log.transactionSync(() => {
      let position = folded;
      for (const bytes of batches) {
        const end = endOf(position, bytes.byteLength);
        if (!hasRoom(folded, end)) throw new Error('The log of format 1 is too full to be moved: start and stop the version that wrote it once without load, then this one.');
        appendToLog(database, position, bytes);
        position = end;
      }
    });
    for (const key of [...old.getKeys()]) void old.remove(key);
  };
}

/** The commits of a log of format 1 from a position to its end, framed as in format 2. */
function batchesOf(old: Table<Buffer, number>, from: number): Buffer[] {
  const batches: Buffer[] = [];
  for (let start = from; ; ) {
    const first = old.get(start % RING_PIECES_1);
    if (first === undefined || first.readDoubleLE(0) !== start) return batches;
    const byteLength = first.readUInt32LE(8);
    const bytes = Buffer.alloc(byteLength);
    const pieces = Math.ceil(byteLength / PIECE_BYTES_1);
    for (let i = 0; i < pieces; i++) old.get((start + i) % RING_PIECES_1)?.copy(bytes, i * PIECE_BYTES_1);
    batches.push(bytes.subarray(FRAME_BYTES_1 - FRAME_BYTES_2));
    start += pieces;
  }
}
