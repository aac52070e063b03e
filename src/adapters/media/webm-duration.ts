import { CLUSTER, elementOf, lengthOf, numberOf, TRACK_ENTRY, TRACKS, SEGMENT } from './ebml.ts';
import type { FileWindow } from './file-window.ts';

const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const TRACK_NUMBER = 0xd7;
const DEFAULT_DURATION = 0x23e383;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
const BLOCK_DURATION = 0x9b;
/** Elements whose content is read; the content of all others is skipped. */
const MASTERS: ReadonlySet<number> = new Set([SEGMENT, INFO, TRACKS, TRACK_ENTRY, CLUSTER, BLOCK_GROUP]);

const NANOSECONDS = 1_000_000;
/** An id and a size take at most 12 bytes; a block begins with its track, at most 8 bytes, and its time, 2 bytes. */
const HEAD_BYTES = 24;
/** Tracks whose default durations are kept. */
const MAX_TRACKS = 100;

/**
 * Returns the duration of a WebM file in milliseconds: that of its header or, for a file without one, as browsers
 * record it, the end of its latest block. Returns undefined if there is none.
 *
 * @param mayContinue called for each element; false stops the search
 */
export async function webmDuration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  let scale = NANOSECONDS;
  let declared = 0;
  let track = 0;
  let cluster = 0;
  let block = 0;
  let end = -1;
  /** Track -> nanoseconds of a block without a duration of its own. */
  const defaults = new Map<number, number>();
  for (let offset = 0; offset < file.size && mayContinue();) {
    const bytes = file.peek(offset, HEAD_BYTES) ?? (await file.at(offset, HEAD_BYTES));
    const element = elementOf(bytes);
    if (element === null) break;
    const { id, head, size } = element;
    if (id === TIMESTAMP_SCALE) scale = numberOf(bytes, head, size) || NANOSECONDS;
    if (id === DURATION) declared = floatOf(bytes, head, size);
    if (id === TRACK_NUMBER) track = numberOf(bytes, head, size);
    if (id === DEFAULT_DURATION && defaults.size < MAX_TRACKS) defaults.set(track, numberOf(bytes, head, size));
    if (id === CLUSTER && declared > 0) break;
    if (id === TIMESTAMP) cluster = numberOf(bytes, head, size);
    if (id === SIMPLE_BLOCK || id === BLOCK) {
      block = cluster + blockTime(bytes, head);
      end = Math.max(end, block + (defaults.get(blockTrack(bytes, head)) ?? 0) / scale);
    }
    if (id === BLOCK_DURATION) end = Math.max(end, block + numberOf(bytes, head, size));
    offset += MASTERS.has(id) ? head : head + size;
  }
  const ms = Math.round(((declared > 0 ? declared : end) * scale) / NANOSECONDS);
  return ms >= 0 && Number.isSafeInteger(ms) ? ms : undefined;
}

/** Reads a floating-point number of 4 or 8 bytes; 0 for any other size. */
function floatOf(bytes: Buffer, head: number, size: number): number {
  if (bytes.length < head + size) return 0;
  if (size === 8) return bytes.readDoubleBE(head);
  return size === 4 ? bytes.readFloatBE(head) : 0;
}

/** Reads the track number of a block, without its leading bit; 0 if it has more than one byte, which is rare. */
function blockTrack(bytes: Buffer, head: number): number {
  return lengthOf(bytes[head]) === 1 ? (bytes[head] ?? 0) & 0x7f : 0;
}

/** Reads the time of a block, relative to its cluster. */
function blockTime(bytes: Buffer, head: number): number {
  const at = head + lengthOf(bytes[head]);
  return bytes.length >= at + 2 ? bytes.readInt16BE(at) : 0;
}
