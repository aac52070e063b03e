import type { Arena } from './arena.ts';
import type { Database } from './database.ts';

/**
 * The log is a ring of records of one size that are written over again and again. That keeps LMDB's list of free pages
 * short: it is searched, merged and saved with every commit, and with a log that grows at one end and is removed at the
 * other a third of all work went there. 2 000 bytes with key and node header fit twice into a page of 4 096.
 */
const PIECE_BYTES = 2_000;
/** Every piece begins with its position (a double), so that what an earlier or a later lap has left is told apart. */
const MARK_BYTES = 8;
const ROOM_BYTES = PIECE_BYTES - MARK_BYTES;
/** Pieces of the ring: 64 MB. */
const RING_PIECES = 32_768;

/** The largest batch, in bytes. */
export const LARGEST_BATCH_BYTES = (RING_PIECES * ROOM_BYTES) / 4;

/** The log has been written over where it was to be read: everything there is in the tree. */
export class WrittenOver extends Error {}

/** Bytes of the ring between two positions. */
export function bytesBetween(from: number, to: number): number {
  return (to - from) * PIECE_BYTES;
}

/** Whether a batch may be written up to `end` when everything up to `folded` is in the tree. */
export function hasRoom(folded: number, end: number): boolean {
  return end - folded <= RING_PIECES;
}

/** The position after a batch of so many bytes that begins at `start`: positions count pieces. */
export function endOf(start: number, byteLength: number): number {
  return start + Math.ceil(byteLength / ROOM_BYTES);
}

/** Writes a batch at `start`, the end of the log; inside a write transaction. `bytes` begin with room for a frame. */
export function appendToLog({ log }: Pick<Database, 'log'>, start: number, bytes: Buffer): void {
  bytes.writeUInt32LE(bytes.byteLength, 0);
  const end = endOf(start, bytes.byteLength);
  // Whole pieces, so that the next lap finds records that it can write over in place.
  const pieces = Buffer.alloc((end - start) * PIECE_BYTES);
  for (let piece = start, at = 0, from = 0; piece < end; piece++, at += PIECE_BYTES, from += ROOM_BYTES) {
    pieces.writeDoubleLE(piece, at);
    bytes.copy(pieces, at + MARK_BYTES, from, from + ROOM_BYTES);
    void log.put(piece % RING_PIECES, pieces.subarray(at, at + PIECE_BYTES));
  }
}

/**
 * The batch that begins at `start`, in memory of the arena; undefined where the log ends.
 *
 * @throws {WrittenOver} when a later lap has passed `start`
 */
export function readLog({ log }: Pick<Database, 'log'>, start: number, arena: Arena): Buffer | undefined {
  const first = pieceAt(log, start);
  if (first === undefined) return undefined;
  const byteLength = first.readUInt32LE(MARK_BYTES);
  const bytes = arena.take(byteLength);
  first.copy(bytes, 0, MARK_BYTES);
  for (let offset = ROOM_BYTES, piece = start + 1; offset < byteLength; offset += ROOM_BYTES, piece++) {
    const next = pieceAt(log, piece);
    if (next === undefined) throw new Error(`the log ends inside a commit: piece ${piece} is missing`);
    next.copy(bytes, offset, MARK_BYTES);
  }
  return bytes;
}

function pieceAt(log: Database['log'], position: number): Buffer | undefined {
  // Valid until the next read: nothing here keeps it.
  const piece = log.getBinaryFast(position % RING_PIECES);
  if (piece === undefined) return undefined;
  const found = piece.readDoubleLE(0);
  if (found > position) throw new WrittenOver(`piece ${position} of the log has been written over by ${found}`);
  return found === position ? piece : undefined;
}
