import { DataError } from '../../../model/errors.ts';
import { crc32 } from '../../../lib/crc32.ts';
import { formatSum, sumOf } from '../env/checked-value.ts';
import type { EncodedText } from './batch.ts';

/**
 * First character of a chunk with a checksum of its key and content; the CRC-32 of key and events follows. Events are
 * JSON objects and never begin so.
 */
const MARK = '$';
/** The same in chunks of format 3, whose checksum is that of the events alone. */
const PLAIN_MARK = '#';
const CHECKSUM_LENGTH = 8;
const LINE_BREAK = 0x0a;

/**
 * Encodes consecutive events of one stream as one record, without decoding their texts: a checksum, then one event per
 * line.
 */
export function encodeEventChunk(key: string, encodedTexts: readonly EncodedText[]): Buffer {
  // Reserve space for the key, which is part of the checksum (see `sumOf`); the shorter header later overwrites its
  // end.
  const prefix = Buffer.from(`${key} `);
  let at = prefix.length;
  const bytes = Buffer.allocUnsafe(encodedTexts.reduce((size, { start, end }) => size + end - start + 1, at - 1));
  prefix.copy(bytes);
  for (const { bytes: text, start, end } of encodedTexts) {
    if (at > prefix.length) at = bytes.writeUInt8(LINE_BREAK, at);
    at += text.copy(bytes, at, start, end);
  }
  const header = `${MARK}${formatSum(crc32(bytes))}\n`;
  bytes.write(header, prefix.length - header.length, 'latin1');
  return bytes.subarray(prefix.length - header.length);
}

/**
 * Returns the events of a chunk. The checksum is verified, unless the chunk was written before chunks had one.
 *
 * @param key the key of the chunk
 * @throws {DataError} when key or content are damaged
 */
export function decodeEventChunk(key: string, value: string): string[] {
  const lines = linesOf(value);
  const sum = value.slice(1, 1 + CHECKSUM_LENGTH);
  const isWhole = value.startsWith(MARK)
    ? sum === sumOf(key, lines)
    : value.startsWith(PLAIN_MARK)
      ? sum === plainSum(lines)
      : value.startsWith('{');
  if (!isWhole) {
    throw new DataError(
      `The store is damaged: the events from ${key} on are corrupted (checksum mismatch). Stop the server, ` +
        'keep a copy of the data folder, and restore the newest backup (collab restore).',
    );
  }
  return lines.split('\n');
}

/** Counts the events of a chunk; the checksum is not verified. */
export function eventCountOf(value: string): number {
  return linesOf(value).split('\n').length;
}

function linesOf(value: string): string {
  return value.startsWith(MARK) || value.startsWith(PLAIN_MARK) ? value.slice(1 + CHECKSUM_LENGTH + 1) : value;
}

function plainSum(lines: string): string {
  return formatSum(crc32(lines));
}
