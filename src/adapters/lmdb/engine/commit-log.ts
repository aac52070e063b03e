import { DataError } from '../../../model/errors.ts';
import { crc32 } from '../../../lib/crc32.ts';
import type { Arena } from './arena.ts';
import { FRAME_BYTES } from './batch.ts';
import type { LogEnvironment } from '../env/log-file.ts';

/**
 * The log is a ring of records of one size that are written over again and again. That keeps LMDB's list of free pages
 * short: it is searched, merged and saved with every commit, and with a log that grows at one end and is removed at the
 * other a third of all work went there. 2 000 bytes with key and node header fit twice into a page of 4 096.
 */
const PIECE_BYTES = 2_000;
/**
 * Every piece begins with a mark: its position (48 bits) and 16 bits that follow from it. The position tells the laps of the
 * ring apart, the 16 bits tell a damaged position from the one of another lap.
 */
const MARK_BYTES = 8;
const ROOM_BYTES = PIECE_BYTES - MARK_BYTES;
/** Pieces of the ring: 64 MB. */
const RING_PIECES = 32_768;
/** Key of what closes a log to commits; the pieces have the keys below it. */
const SEAL_KEY = RING_PIECES;
/** Any number other than 0, so that bytes of zeros are no valid mark. */
const MARK_SALT = 0xc0de;

/** The largest batch, in bytes. */
export const LARGEST_BATCH_BYTES = (RING_PIECES * ROOM_BYTES) / 4;

/** The log has been written over where it was to be read: everything there is in the tree. */
export class LogOverwritten extends Error {}

/** The log goes on in another file: nothing more is written to this one. */
export class LogRotated extends Error {
  /** Of the log that takes over. */
  readonly generation: number;

  constructor(generation: number) {
    super(`the log goes on in generation ${generation}`);
    this.generation = generation;
  }
}

/** Bytes of the ring between two positions. */
export function bytesBetween(from: number, to: number): number {
  return (to - from) * PIECE_BYTES;
}

/** Whether a batch may be written up to `end` when everything up to `folded` is in the tree. */
export function hasRoom(checkpointed: number, end: number): boolean {
  // One piece stays free for the seal.
  return end - checkpointed < RING_PIECES;
}

/** The position after a batch of so many bytes that begins at `start`: positions count pieces. */
export function endOf(start: number, byteLength: number): number {
  return start + Math.ceil(byteLength / ROOM_BYTES);
}

/**
 * Writes a batch at `start`, the end of the log; inside a write transaction of `log`. `bytes` begin with room for a frame:
 * the number of bytes, and the CRC-32 of what follows the frame.
 *
 * @throws {LogRotated} when the log has been sealed
 */
export function appendToLog(log: LogEnvironment, start: number, bytes: Buffer): void {
  const seal = log.get(SEAL_KEY);
  if (seal !== undefined) throw new LogRotated(seal.readUInt32LE(0));
  bytes.writeUInt32LE(bytes.byteLength, 0);
  bytes.writeUInt32LE(crc32(bytes.subarray(FRAME_BYTES)), 4);
  writePieces(log, start, bytes);
}

/** Ends the log at `end` for good: whoever reads on or commits is told to go to `generation`. Inside a write transaction. */
export function sealLog(log: LogEnvironment, end: number, generation: number): void {
  const seal = Buffer.alloc(4);
  seal.writeUInt32LE(generation, 0);
  void log.put(SEAL_KEY, seal);
  const frame = Buffer.alloc(FRAME_BYTES + 4);
  seal.copy(frame, FRAME_BYTES);
  frame.writeUInt32LE(crc32(seal), 4);
  writePieces(log, end, frame);
}

/** Copies what stands between two positions into a log that has nothing there; inside a write transaction of that one. */
export function copyLog(from: LogEnvironment, to: LogEnvironment, start: number, end: number): void {
  for (let position = start; position < end; position++) {
    const piece = pieceAt(from, position);
    if (piece === undefined) throw damaged(position);
    // The buffer that lmdb-js reads into is larger than its content, and used again.
    void to.put(position % RING_PIECES, Buffer.from(piece.subarray(0, PIECE_BYTES)));
  }
}

/**
 * The batch that begins at `start`, in memory of the arena; undefined where the log ends. Returns `expected` where the log
 * holds the same bytes: the process that wrote a batch need not check its sum.
 *
 * @throws {LogOverwritten} when a later lap has passed `start`
 * @throws {LogRotated} where the log has been sealed
 * @throws {DataError} when what stands there is not what was written
 */
export function readLog(log: LogEnvironment, start: number, arena: Arena, expected?: Buffer): Buffer | undefined {
  const first = pieceAt(log, start);
  if (first === undefined) return undefined;
  const byteLength = first.readUInt32LE(MARK_BYTES);
  if (byteLength === 0) throw sealIn(first, start);
  if (byteLength > LARGEST_BATCH_BYTES || byteLength < FRAME_BYTES) throw damaged(start);
  const bytes = arena.take(byteLength);
  first.copy(bytes, 0, MARK_BYTES);
  for (let offset = ROOM_BYTES, position = start + 1; offset < byteLength; offset += ROOM_BYTES, position++) {
    const next = pieceAt(log, position);
    if (next === undefined) throw damaged(start);
    next.copy(bytes, offset, MARK_BYTES);
  }
  if (expected?.equals(bytes) === true) return expected;
  if (bytes.readUInt32LE(4) !== crc32(bytes.subarray(FRAME_BYTES))) throw damaged(start);
  return bytes;
}

function writePieces(log: LogEnvironment, start: number, bytes: Buffer): void {
  const end = endOf(start, bytes.byteLength);
  // Whole pieces, so that the next lap finds records that it can write over in place.
  const pieces = Buffer.alloc((end - start) * PIECE_BYTES);
  for (let position = start, at = 0, from = 0; position < end; position++, at += PIECE_BYTES, from += ROOM_BYTES) {
    writeMark(pieces, at, position);
    bytes.copy(pieces, at + MARK_BYTES, from, from + ROOM_BYTES);
    void log.put(position % RING_PIECES, pieces.subarray(at, at + PIECE_BYTES));
  }
}

function pieceAt(log: LogEnvironment, position: number): Buffer | undefined {
  // Valid until the next read: nothing here keeps it.
  const piece = log.getBinaryFast(position % RING_PIECES);
  if (piece === undefined) return undefined;
  const found = readMark(piece);
  if (found === undefined) throw damaged(position);
  if (found > position) throw new LogOverwritten(`piece ${position} of the log has been written over by ${found}`);
  return found === position ? piece : undefined;
}

function sealIn(piece: Buffer, position: number): LogRotated | DataError {
  const generation = piece.subarray(MARK_BYTES + FRAME_BYTES, MARK_BYTES + FRAME_BYTES + 4);
  if (crc32(generation) !== piece.readUInt32LE(MARK_BYTES + 4)) return damaged(position);
  return new LogRotated(generation.readUInt32LE(0));
}

function writeMark(bytes: Buffer, at: number, position: number): void {
  const low = position >>> 0;
  const high = Math.floor(position / 2 ** 32);
  bytes.writeUInt32LE(low, at);
  bytes.writeUInt16LE(high, at + 4);
  bytes.writeUInt16LE(checkOf(low, high), at + 6);
}

/** The position of a piece; undefined when the mark is damaged: every flipped bit of it shows. */
function readMark(piece: Buffer): number | undefined {
  const low = piece.readUInt32LE(0);
  const high = piece.readUInt16LE(4);
  return piece.readUInt16LE(6) === checkOf(low, high) ? high * 2 ** 32 + low : undefined;
}

function checkOf(low: number, high: number): number {
  return (low ^ (low >>> 16) ^ high ^ MARK_SALT) & 0xffff;
}

function damaged(position: number): DataError {
  return new DataError(
    `The store is damaged: the commit at position ${position} of its log is not what was written. Stop the server, keep a copy of ` +
      'the data folder, and restore a backup (collab restore).',
  );
}
