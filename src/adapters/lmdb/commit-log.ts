import type { Database } from './database.ts';

/**
 * Bytes of a batch per record. What does not fit into half a page goes to overflow pages, and LMDB's list of freed ones
 * makes every later commit dearer the longer it grows (12 000 commits of 8 to 36 kB, the older ones removed: 20.9 G
 * instructions as one record each, 6.6 G in pieces). 2 000 bytes with key and node header fit twice into 4 096.
 */
const PIECE_BYTES = 2_000;
/** Keys per position: a batch of more pieces is stored as one record after all. */
const PIECES = 4_096;

/** Writes a batch at its position; inside a write transaction. */
export function appendToLog({ log }: Database, position: number, bytes: Buffer): void {
  const first = position * PIECES;
  if (bytes.byteLength > PIECE_BYTES * (PIECES - 1)) {
    void log.put(first, bytes);
    return;
  }
  for (let start = 0, piece = 0; start < bytes.byteLength; start += PIECE_BYTES, piece++) {
    void log.put(first + piece, bytes.subarray(start, start + PIECE_BYTES));
  }
}

/** The batch at a position, or undefined where the log has none. */
export function readLog({ log }: Database, position: number): Buffer | undefined {
  const first = position * PIECES;
  let piece = log.get(first);
  if (piece === undefined || piece.byteLength !== PIECE_BYTES) return piece;
  const pieces: Buffer[] = [];
  for (let next = 1; piece !== undefined; next++) {
    pieces.push(piece);
    piece = piece.byteLength < PIECE_BYTES ? undefined : log.get(first + next);
  }
  return Buffer.concat(pieces);
}

/** Forgets the batches at and before a position; inside a write transaction. */
export function trimLog({ log }: Database, upTo: number): void {
  if (upTo < 1) return;
  for (const key of [...log.getKeys({ end: (upTo + 1) * PIECES })]) void log.remove(key);
}
