import { crc32 } from '../../../lib/crc32.ts';
import { DataError } from '../../../model/errors.ts';

/** First byte of a value with a checksum. No text in UTF-8 begins with it. */
const MARK = 0xff;
const HEADER_BYTES = 5;

/** A value of the base table as it was read. `textOfValue` returns its text. */
export interface CheckedValue {
  readonly text: string;
  /**
   * CRC-32 of the key under which it was written, if the value is whole; null for a value that older formats wrote
   * without a checksum.
   */
  readonly keySum: number | null;
}

/** Decodes values of the base table; `put` takes what `encodeValue` returns, as `asBinary`. */
export const valueEncoder = {
  encode(): never {
    throw new Error('values of the base table are written by encodeValue');
  },
  /** @param size the size of the content, which is at the beginning of `bytes`; other values are not sizes */
  decode(bytes: Buffer, size: unknown): CheckedValue {
    const end = typeof size === 'number' ? size : bytes.length;
    // Values of format 3 and before begin with a printable ASCII character. A flipped bit in the mark does not give
    // one.
    if (end === 0 || isPrintable(bytes[0] as number)) return { text: bytes.toString('utf8', 0, end), keySum: null };
    if (end < HEADER_BYTES || bytes[0] !== MARK) return { text: '', keySum: -1 };
    return {
      text: bytes.toString('utf8', HEADER_BYTES, end),
      keySum: (bytes.readUInt32LE(1) ^ crc32(bytes.subarray(HEADER_BYTES, end))) >>> 0,
    };
  },
};

/** Encodes a value: the mark, the CRC-32 of the key XOR that of the text (32 bits), and the text in UTF-8. */
export function encodeValue(key: string, text: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + text.length);
  bytes[0] = MARK;
  bytes.writeUInt32LE((crc32(text) ^ crc32(key)) >>> 0, 1);
  bytes.set(text, HEADER_BYTES);
  return bytes;
}

/**
 * Returns the text of a value that was read under `key`.
 *
 * @throws {DataError} when key or value is damaged
 */
export function textOfValue(key: string, { text, keySum }: CheckedValue): string {
  if (keySum === null || keySum === crc32(key)) return text;
  throw new DataError(
    `The store is damaged: the record ${key} is corrupted (checksum mismatch). Stop the server, keep a ` +
      'copy of the data folder, and restore the newest backup (collab restore).',
  );
}

/** Adds a checksum to a number that is stored beside the base table under `key`. */
export function encodeNumber(key: string, value: number): string {
  return `${value} ${sumOf(key, String(value))}`;
}

/**
 * Returns the number of such a text.
 *
 * @throws {DataError} when it is damaged
 */
export function decodeNumber(key: string, text: string): number {
  const [, digits = '', sum] = /^(\d+) ([0-9a-f]{8})$/.exec(text) ?? [];
  if (sum === sumOf(key, digits)) return Number(digits);
  throw new DataError(
    `The store is damaged: its entry ${key} is corrupted (checksum mismatch). Stop the server, keep a ` +
      'copy of the data folder, and restore the newest backup (collab restore).',
  );
}

/** The CRC-32 of a text that is stored under `key`, as 8 hexadecimal digits. */
export function sumOf(key: string, text: string): string {
  return formatSum(crc32(`${key} ${text}`));
}

/** A CRC-32 as 8 hexadecimal digits. */
export function formatSum(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}

function isPrintable(byte: number): boolean {
  return byte >= 0x20 && byte <= 0x7e;
}
