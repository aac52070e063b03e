import * as zlib from 'node:zlib';

/** The reversed polynomial of CRC-32 as in zip and gzip. */
const POLYNOMIAL = 0xedb88320;

/**
 * The CRC-32 of bytes, or of a text in UTF-8, as an unsigned 32-bit number. Uses zlib (Node 20.15 and later), otherwise
 * a table.
 */
export const crc32: (data: Uint8Array | string) => number =
  'crc32' in zlib
    ? (data) => zlib.crc32(data)
    : (data) => crc32ByTable(typeof data === 'string' ? Buffer.from(data) : data);

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest & 1) === 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1;
  return rest;
});

/** `crc32` without zlib; the results are the same. */
export function crc32ByTable(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}
