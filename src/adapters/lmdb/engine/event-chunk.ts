import { DataError } from '../../../model/errors.ts';
import { crc32 } from '../../../lib/crc32.ts';

/** Begins the first line of a segment: the CRC-32 of the rest follows. No event begins so, they are JSON objects. */
const MARK = '#';
const CHECKSUM_LENGTH = 8;

/** Events, one a line, as they are stored together: with a checksum before them. */
export function encodeEventChunk(texts: readonly string[]): string {
  const lines = texts.join('\n');
  return `${MARK}${checksum(lines)}\n${lines}`;
}

/**
 * The events of a stored segment. One that was written before segments had checksums is not checked.
 *
 * @param key names the segment in the message
 * @throws {DataError} when it is not what was written
 */
export function decodeEventChunk(key: string, value: string): string[] {
  const lines = linesOf(value);
  if (value.startsWith(MARK) ? value.slice(1, 1 + CHECKSUM_LENGTH) !== checksum(lines) : !value.startsWith('{')) {
    throw new DataError(`The store is damaged: the events from ${key} on are not what was written. Stop the server, keep a copy of the data folder, and restore the newest backup (collab restore).`);
  }
  return lines.split('\n');
}

/** How many events a segment holds; it is not checked. */
export function eventCountOf(value: string): number {
  return linesOf(value).split('\n').length;
}

function linesOf(value: string): string {
  return value.startsWith(MARK) ? value.slice(MARK.length + CHECKSUM_LENGTH + 1) : value;
}

function checksum(lines: string): string {
  return crc32(Buffer.from(lines)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}
