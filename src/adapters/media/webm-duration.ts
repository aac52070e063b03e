import { FileWindow } from './file-window.ts';

const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const CLUSTER = 0x1f43b675;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
/** What is looked into; everything else is skipped. */
const MASTERS: ReadonlySet<number> = new Set([SEGMENT, INFO, CLUSTER, BLOCK_GROUP]);

const NANOSECONDS = 1_000_000;
/** An id and a size take at most 12 bytes; a block begins with its track, up to 8, and 2 of its time. */
const HEAD_BYTES = 24;

interface Element {
  readonly id: number;
  /** Where its content begins, counted from the element. */
  readonly head: number;
  /** Infinity when it is not told: then it lasts until something that can't be in it. */
  readonly size: number;
}

/**
 * Milliseconds of a WebM file as browsers record it: written as it comes, so neither its duration nor the sizes of its
 * clusters are told. The time of the latest block; undefined when there is none.
 *
 * @param goOn asked now and then; false gives up
 */
export function webmDuration(path: string, goOn: () => boolean): Promise<number | undefined> {
  return FileWindow.over(path, async (file) => {
    let scale = NANOSECONDS;
    let cluster = 0;
    let latest: number | undefined;
    for (let offset = 0; offset < file.size && goOn(); ) {
      const bytes = await file.at(offset, HEAD_BYTES);
      const element = elementOf(bytes);
      if (element === null) break;
      const { id, head, size } = element;
      if (id === TIMESTAMP_SCALE) scale = numberOf(bytes, head, size) || NANOSECONDS;
      if (id === TIMESTAMP) cluster = numberOf(bytes, head, size);
      if (id === SIMPLE_BLOCK || id === BLOCK) latest = Math.max(latest ?? 0, cluster + blockTime(bytes, head));
      offset += MASTERS.has(id) ? head : head + size;
    }
    return latest === undefined ? undefined : Math.round((latest * scale) / NANOSECONDS);
  });
}

/** The element that `bytes` begin with; null when they are none. */
function elementOf(bytes: Buffer): Element | null {
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

/** How many bytes a number takes that begins with this one: its leading zero bits tell. 0 for none. */
function lengthOf(first = 0): number {
  return first === 0 ? 0 : Math.clz32(first) - 23;
}

function numberOf(bytes: Buffer, head: number, size: number): number {
  return size >= 1 && size <= 6 && bytes.length >= head + size ? bytes.readUIntBE(head, size) : 0;
}

/** The time of a block, counted from its cluster. */
function blockTime(bytes: Buffer, head: number): number {
  const at = head + lengthOf(bytes[head]);
  return bytes.length >= at + 2 ? bytes.readInt16BE(at) : 0;
}
