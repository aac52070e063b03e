/** Ids of elements of WebM and Matroska that contain others. */
export const SEGMENT = 0x18538067;
export const TRACKS = 0x1654ae6b;
export const TRACK_ENTRY = 0xae;
export const CLUSTER = 0x1f43b675;

/** The header of an element of EBML, the format of WebM and Matroska. */
export interface Element {
  readonly id: number;
  /** Offset of its content within the element. */
  readonly head: number;
  /** Size of its content. Infinity if it is unknown: the element extends to the first one that it cannot contain. */
  readonly size: number;
}

/** Reads the header of the element that `bytes` begin with; null if there is none. */
export function elementOf(bytes: Buffer): Element | null {
  const idLength = lengthOf(bytes[0]);
  if (idLength === 0 || idLength > 4 || bytes.length <= idLength) return null;
  const sizeLength = lengthOf(bytes[idLength]);
  const head = idLength + sizeLength;
  if (sizeLength === 0 || bytes.length < head) return null;
  const id = bytes.readUIntBE(0, idLength);
  const mask = 2 ** (8 - sizeLength) - 1;
  let size = (bytes[idLength] ?? 0) & mask;
  let isUnknown = size === mask;
  for (let i = idLength + 1; i < head; i++) {
    const byte = bytes[i] ?? 0;
    size = size * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return { id, head, size: isUnknown ? Infinity : size };
}

/** Returns the length in bytes of a number by its first byte, whose leading zero bits count it; 0 if it is invalid. */
export function lengthOf(first = 0): number {
  return first === 0 ? 0 : Math.clz32(first) - 23;
}

/** Reads an unsigned number of `size` bytes at an offset; 0 if it has more than 6 bytes, or does not fit. */
export function numberOf(bytes: Buffer, offset: number, size: number): number {
  return size >= 1 && size <= 6 && bytes.length >= offset + size ? bytes.readUIntBE(offset, size) : 0;
}
