import { DataError } from '../../../model/errors.ts';
import { crc32 } from '../../../lib/crc32.ts';
import type { Arena } from './arena.ts';
import { FRAME_BYTES } from './batch.ts';
import { type LogFile, nextLogIndex, readLogValue } from '../env/log-file.ts';

/**
 * The write-ahead log is a ring of WAL records of one size that are overwritten again and again. That keeps LMDB's list
 * of free pages short: it is searched, merged and saved with every commit, and took a third of all CPU time with a log
 * that grows at one end and is removed at the other. 2 000 bytes with key and node header fit twice into a page of 4
 * 096.
 */
const RECORD_BYTES = 2_000;
/**
 * Every WAL record begins with a header: its position (48 bits) and 16 check bits computed from it. The position shows
 * in which pass over the ring the record was written; the check bits tell a damaged position from one of another pass.
 */
const HEADER_BYTES = 8;
const PAYLOAD_BYTES = RECORD_BYTES - HEADER_BYTES;
/** Any number other than 0, so that zero bytes are no valid header. */
const CHECK_SALT = 0xc0de;

/** The largest batch of a ring of `ringRecords`, in bytes. */
export function largestBatchBytes(ringRecords: number): number {
  return (ringRecords * PAYLOAD_BYTES) / 4;
}

/** The position to be read has been overwritten: the base table has everything up to there. */
export class LogOverwritten extends Error {}

/** The log continues in another file: nothing more is written to this one. */
export class LogRotated extends Error {
  /** The generation that continues this log. */
  readonly generation: number;

  constructor(generation: number) {
    super(`the log continues in generation ${generation}`);
    this.generation = generation;
  }
}

/** Bytes of the ring between two positions. */
export function bytesBetween(from: number, to: number): number {
  return (to - from) * RECORD_BYTES;
}

/**
 * Whether a batch that ends at `end` fits into the ring of a log while the base table has everything up to
 * `checkpointed`.
 */
export function hasSpace({ ringRecords }: LogFile, checkpointed: number, end: number): boolean {
  // One WAL record stays free for the seal.
  return end - checkpointed < ringRecords;
}

/** The position after a batch of `byteLength` bytes that begins at `start`. Positions count WAL records. */
export function endOf(start: number, byteLength: number): number {
  return start + Math.ceil(byteLength / PAYLOAD_BYTES);
}

/**
 * Writes a batch at `start`, the end of the log; inside a write transaction of `log`.
 *
 * @param bytes begin with space for a frame, which is filled in: the number of bytes, and the CRC-32 of what follows it
 * @throws {LogRotated} when the log has been sealed
 */
export function appendToLog(log: LogFile, start: number, bytes: Buffer): void {
  const seal = log.get(sealKey(log));
  if (seal !== undefined) throw new LogRotated(seal.readUInt32LE(0));
  bytes.writeUInt32LE(bytes.byteLength, 0);
  bytes.writeUInt32LE(crc32(bytes.subarray(FRAME_BYTES)), 4);
  writeRecords(log, start, bytes);
}

/**
 * Ends the log at `end` permanently: reads that come to `end` and commits throw `LogRotated` with `generation` from
 * then on. Inside a write transaction.
 */
export function sealLog(log: LogFile, end: number, generation: number): void {
  const seal = Buffer.alloc(4);
  seal.writeUInt32LE(generation, 0);
  void log.put(sealKey(log), seal);
  const frame = Buffer.alloc(FRAME_BYTES + 4);
  seal.copy(frame, FRAME_BYTES);
  frame.writeUInt32LE(crc32(seal), 4);
  writeRecords(log, end, frame);
}

/** Copies the WAL records between two positions to a log that has none there; inside a write transaction of `to`. */
export function copyLog(from: LogFile, to: LogFile, start: number, end: number): void {
  for (let position = start; position < end; position++) {
    const record = recordAt(from, position);
    if (record === undefined) throw damaged(position);
    // lmdb-js reads into a buffer that is larger than the content and reused by the next read.
    void to.put(position % to.ringRecords, Buffer.from(record.subarray(0, RECORD_BYTES)));
  }
}

/**
 * Reads the batch that begins at `start` into memory of the arena; returns undefined at the end of the log.
 *
 * @param expected returned itself if the log has the same bytes: the process that wrote a batch need not verify its
 *   checksum
 * @throws {LogOverwritten} when `start` has been overwritten
 * @throws {LogRotated} when the log is sealed at `start`
 * @throws {DataError} when the content is damaged
 */
export function readLog(log: LogFile, start: number, arena: Arena, expected?: Buffer): Buffer | undefined {
  const first = recordAt(log, start);
  if (first === undefined) return undefined;
  const byteLength = first.readUInt32LE(HEADER_BYTES);
  if (byteLength === 0) throw readSeal(first, start);
  if (byteLength > largestBatchBytes(log.ringRecords) || byteLength < FRAME_BYTES) throw damaged(start);
  const bytes = arena.allocate(byteLength);
  first.copy(bytes, 0, HEADER_BYTES, RECORD_BYTES);
  for (let offset = PAYLOAD_BYTES, position = start + 1; offset < byteLength; offset += PAYLOAD_BYTES, position++) {
    const next = recordAt(log, position);
    if (next === undefined) throw damaged(start);
    next.copy(bytes, offset, HEADER_BYTES, RECORD_BYTES);
  }
  if (expected?.equals(bytes) === true) return expected;
  if (bytes.readUInt32LE(4) !== crc32(bytes.subarray(FRAME_BYTES))) throw damaged(start);
  return bytes;
}

/**
 * Checks that the log ends at `head`: a later WAL record means that the one at `head` is lost, and commits with it.
 *
 * @throws {DataError} when there is one
 */
export function requireEnd(log: LogFile, head: number): void {
  // A commit since the log was read is no damage.
  if (recordAt(log, head) !== undefined) return;
  const next = nextLogIndex(log, (head % log.ringRecords) + 1);
  if (next === undefined) return;
  const record = readLogValue(log, next);
  const found = record === undefined ? undefined : readHeader(record);
  if (found === undefined || found > head) throw damaged(head);
}

/** Key of the seal, which closes a log to commits; the WAL records have the keys below it. */
function sealKey({ ringRecords }: LogFile): number {
  return ringRecords;
}

function writeRecords(log: LogFile, start: number, bytes: Buffer): void {
  const end = endOf(start, bytes.byteLength);
  // Always the full size, so that LMDB can overwrite the record in place when the ring wraps.
  const records = Buffer.alloc((end - start) * RECORD_BYTES);
  for (let position = start, at = 0, from = 0; position < end; position++, at += RECORD_BYTES, from += PAYLOAD_BYTES) {
    writeHeader(records, at, position);
    bytes.copy(records, at + HEADER_BYTES, from, from + PAYLOAD_BYTES);
    void log.put(position % log.ringRecords, records.subarray(at, at + RECORD_BYTES));
  }
}

/** The WAL record at a position, valid until the next read; undefined if it has not been written. */
function recordAt(log: LogFile, position: number): Buffer | undefined {
  const record = readLogValue(log, position % log.ringRecords);
  if (record === undefined) return undefined;
  const found = readHeader(record);
  if (found === undefined) throw damaged(position);
  if (found > position) throw new LogOverwritten(`position ${position} of the log has been overwritten by ${found}`);
  return found === position ? record : undefined;
}

function readSeal(record: Buffer, position: number): LogRotated | DataError {
  const generation = record.subarray(HEADER_BYTES + FRAME_BYTES, HEADER_BYTES + FRAME_BYTES + 4);
  if (crc32(generation) !== record.readUInt32LE(HEADER_BYTES + 4)) return damaged(position);
  return new LogRotated(generation.readUInt32LE(0));
}

function writeHeader(bytes: Buffer, at: number, position: number): void {
  const low = position >>> 0;
  const high = Math.floor(position / 2 ** 32);
  bytes.writeUInt32LE(low, at);
  bytes.writeUInt16LE(high, at + 4);
  bytes.writeUInt16LE(checkBits(low, high), at + 6);
}

/** The position of a WAL record; undefined when the header is damaged. Any single flipped bit is detected. */
function readHeader(record: Buffer): number | undefined {
  const low = record.readUInt32LE(0);
  const high = record.readUInt16LE(4);
  return record.readUInt16LE(6) === checkBits(low, high) ? high * 2 ** 32 + low : undefined;
}

function checkBits(low: number, high: number): number {
  return (low ^ (low >>> 16) ^ high ^ CHECK_SALT) & 0xffff;
}

function damaged(position: number): DataError {
  return new DataError(
    `The store is damaged: the commit at position ${position} of its log is corrupted. Stop the server, keep a copy of ` +
      'the data folder, and restore a backup (collab restore).',
  );
}
