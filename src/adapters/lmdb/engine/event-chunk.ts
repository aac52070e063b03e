import { DataError } from '../../../model/errors.ts';
import { crc32 } from '../../../lib/crc32.ts';

/** First character of a chunk with a checksum; the CRC-32 of the other lines follows. Events are JSON objects and never begin so. */
const CHECKSUM_MARK = '#';
const CHECKSUM_LENGTH = 8;

/** Encodes consecutive events of one stream as one record: a checksum, then one event per line. */
export function encodeEventChunk(texts: readonly string[]): string {
  const lines = texts.join('\n');
  return `${CHECKSUM_MARK}${checksum(lines)}\n${lines}`;
}

/**
 * Returns the events of a chunk. The checksum is verified, unless the chunk was written before chunks had one.
 *
 * @param key names the chunk in the error message
 * @throws {DataError} when the content is damaged
 */
export function decodeEventChunk(key: string, value: string): string[] {
  const lines = linesOf(value);
  if (value.startsWith(CHECKSUM_MARK) ? value.slice(1, 1 + CHECKSUM_LENGTH) !== checksum(lines) : !value.startsWith('{')) {
    throw new DataError(`The store is damaged: the events from ${key} on are not what was written. Stop the server, keep a copy of the data folder, and restore the newest backup (collab restore).`);
  }
  return lines.split('\n');
}

/** Counts the events of a chunk; the checksum is not verified. */
export function eventCountOf(value: string): number {
  return linesOf(value).split('\n').length;
}

function linesOf(value: string): string {
  return value.startsWith(CHECKSUM_MARK) ? value.slice(CHECKSUM_MARK.length + CHECKSUM_LENGTH + 1) : value;
}

function checksum(lines: string): string {
  return crc32(Buffer.from(lines)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}
