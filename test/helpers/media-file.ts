import { HEAD_BYTES, type MediaFile } from '../../src/ports/media.ts';

/** A file for `Media` that is in memory. */
export function mediaFile(bytes: Buffer, userKey = 'ann'): MediaFile {
  return {
    size: bytes.length,
    read: async (offset, length) => Buffer.from(bytes.subarray(offset, offset + length)),
    head: bytes.subarray(0, HEAD_BYTES),
    tail: bytes.subarray(-2),
    userKey,
  };
}
