import type { Arena } from './arena.ts';
import type { Database } from './database.ts';

/**
 * The log is a ring of records of one size that are written over again and again. That keeps LMDB's list of free pages
 * short: it is searched, merged and saved with every commit, and with a log that grows at one end and is removed at the
 * other a third of all work went there. 2 000 bytes with key and node header fit twice into a page of 4 096.
 */
const PIECE_BYTES = 2_000;
/** Pieces of the ring: 64 MB. */
const RING_PIECES = 32_768;

/** The largest batch, in bytes. */
export const LARGEST_BATCH_BYTES = (RING_PIECES * PIECE_BYTES) / 4;

/** Bytes of the ring between two positions. */
export function bytesBetween(from: number, to: number): number {
  return (to - from) * PIECE_BYTES;
}

/** Whether a batch may be written from `start` to `end` when everything up to `folded` is in the tree. */
export function hasRoom(folded: number, end: number): boolean {
  return end - folded <= RING_PIECES;
}

/** The position after a batch of so many bytes that begins at `start`: positions count pieces. */
export function endOf(start: number, byteLength: number): number {
  return start + Math.ceil(byteLength / PIECE_BYTES);
}

/** Writes a batch at `start`, the end of the log; inside a write transaction. `bytes` begin with room for a frame. */
export function appendToLog({ log }: Database, start: number, bytes: Buffer): void {
  bytes.writeDoubleLE(start, 0);
  bytes.writeUInt32LE(bytes.byteLength, 8);
  for (let offset = 0, piece = start; offset < bytes.byteLength; offset += PIECE_BYTES, piece++) {
    void log.put(piece % RING_PIECES, pieceAt(bytes, offset));
  }
}

/** The batch that begins at `start`, in memory of the arena; undefined where the log ends or has been written over. */
export function readLog({ log }: Database, start: number, arena: Arena): Buffer | undefined {
  const first = log.get(start % RING_PIECES);
  if (first === undefined || first.readDoubleLE(0) !== start) return undefined;
  const byteLength = first.readUInt32LE(8);
  const bytes = arena.take(byteLength);
  first.copy(bytes);
  for (let offset = PIECE_BYTES, piece = start + 1; offset < byteLength; offset += PIECE_BYTES, piece++) {
    log.get(piece % RING_PIECES)?.copy(bytes, offset);
  }
  return bytes;
}

/** A piece at full size, so that the next lap finds a record that it can write over in place. */
function pieceAt(bytes: Buffer, offset: number): Buffer {
  if (offset + PIECE_BYTES <= bytes.byteLength) return bytes.subarray(offset, offset + PIECE_BYTES);
  const last = Buffer.alloc(PIECE_BYTES);
  bytes.copy(last, 0, offset);
  return last;
}
