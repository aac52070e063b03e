import type { FileWindow } from './file-window.ts';

/** Boxes whose content is read; the content of all others is skipped. */
const CONTAINERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'mvex', 'moof', 'traf']);
/** Bytes of a box that are read at once: its header of at most 16 bytes and the fields before its lists. */
const HEAD_BYTES = 48;
const MAX_TRACKS = 100;

// Flags of boxes, which say what fields follow.
const TFHD_DATA_OFFSET = 0x1;
const TFHD_DESCRIPTION = 0x2;
const TFHD_DURATION = 0x8;
const TRUN_DATA_OFFSET = 0x1;
const TRUN_FIRST_FLAGS = 0x4;
const TRUN_DURATION = 0x100;
const TRUN_FIELDS = [TRUN_DURATION, 0x200, 0x400, 0x800];

interface Clock {
  /** Units of time per second; 0 while unknown. */
  readonly scale: number;
  readonly units: number;
}

interface Track extends Clock {
  scale: number;
  units: number;
  /** Duration of a sample without a duration of its own. */
  sampleUnits: number;
  /** End of its latest fragment. */
  end: number;
}

/** The list of samples of a fragment: its place in the file, and the duration of samples without one of their own. */
interface Run {
  readonly start: number;
  readonly end: number;
  readonly sampleUnits: number;
}

/**
 * Returns the duration of an MP4 file in milliseconds: that of its header (`mvhd`, which includes edits, or else its
 * longest track). For a fragmented file, as browsers record it, it is the end of the latest fragment, because its
 * header was written before the content. Returns undefined if the duration is unknown.
 *
 * @param mayContinue called for each box; false stops the search
 */
export async function mp4Duration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  const tracks = new Map<number, Track>();
  const trackOf = (id: number): Track => tracks.get(id) ?? addTrack(tracks, id);
  const movie = { scale: 0, units: 0 };
  let track = trackOf(0);
  let sampleUnits = 0;
  let isFragmented = false;
  for (let offset = 0; offset < file.size && mayContinue();) {
    const bytes = file.peek(offset, HEAD_BYTES) ?? (await file.at(offset, HEAD_BYTES));
    const box = boxOf(bytes);
    if (box === null) break;
    const { type, head, size } = box;
    const flags = numberAt(bytes, head) % 2 ** 24;
    const isLong = bytes[head] === 1;
    if (type === 'mvex' || type === 'moof') isFragmented = true;
    if (type === 'mvhd') Object.assign(movie, clockAt(bytes, head));
    if (type === 'tkhd') track = trackOf(numberAt(bytes, head + (isLong ? 20 : 12)));
    if (type === 'mdhd') Object.assign(track, clockAt(bytes, head));
    if (type === 'trex') trackOf(numberAt(bytes, head + 4)).sampleUnits = numberAt(bytes, head + 12);
    if (type === 'tfhd') {
      track = trackOf(numberAt(bytes, head + 4));
      const at = head + 8 + (flags & TFHD_DATA_OFFSET ? 8 : 0) + (flags & TFHD_DESCRIPTION ? 4 : 0);
      sampleUnits = flags & TFHD_DURATION ? numberAt(bytes, at) : track.sampleUnits;
    }
    if (type === 'tfdt') track.end = isLong ? longAt(bytes, head + 4) : numberAt(bytes, head + 4);
    if (type === 'trun')
      track.end += await unitsOf(file, { start: offset + head, end: offset + size, sampleUnits }, mayContinue);
    offset += CONTAINERS.has(type) ? head : size;
  }
  const all = [...tracks.values()];
  if (isFragmented) return longestOf(all.map(({ scale, end }) => ({ scale, units: end })));
  return longestOf([movie]) ?? longestOf(all);
}

/** Returns a new track, and adds it unless there are too many. */
function addTrack(tracks: Map<number, Track>, id: number): Track {
  const track: Track = { scale: 0, units: 0, sampleUnits: 0, end: 0 };
  if (tracks.size < MAX_TRACKS) tracks.set(id, track);
  return track;
}

/** Returns the total duration of the samples of a run. */
async function unitsOf(
  file: FileWindow,
  { start, end, sampleUnits }: Run,
  mayContinue: () => boolean,
): Promise<number> {
  const bytes = await file.at(start, 8);
  const flags = numberAt(bytes, 0);
  const count = numberAt(bytes, 4);
  if ((flags & TRUN_DURATION) === 0) return count * sampleUnits;
  const first = start + 8 + (flags & TRUN_DATA_OFFSET ? 4 : 0) + (flags & TRUN_FIRST_FLAGS ? 4 : 0);
  const stride = 4 * TRUN_FIELDS.filter((field) => flags & field).length;
  const stop = Math.min(end, file.size, first + count * stride);
  let units = 0;
  for (let at = first; at < stop && mayContinue(); at += stride)
    units += numberAt(file.peek(at, 4) ?? (await file.at(at, 4)), 0);
  return units;
}

/** Returns the longest duration in milliseconds; undefined if none is known. */
function longestOf(durations: readonly Clock[]): number | undefined {
  const longest = Math.max(
    0,
    ...durations.map(({ scale, units }) => (scale === 0 ? 0 : Math.round((units * 1_000) / scale))),
  );
  return longest > 0 && Number.isSafeInteger(longest) ? longest : undefined;
}

/** Reads unit and duration of a `mvhd` or `mdhd` box. A duration with all bits set means unknown. */
function clockAt(bytes: Buffer, head: number): Clock {
  if (bytes[head] !== 1) {
    const units = numberAt(bytes, head + 16);
    return { scale: numberAt(bytes, head + 12), units: units === 2 ** 32 - 1 ? 0 : units };
  }
  const units = longAt(bytes, head + 24);
  return { scale: numberAt(bytes, head + 20), units: units >= 2 ** 63 ? 0 : units };
}

/** Reads type, header size and total size of the box that `bytes` begin with; null if there is none. */
function boxOf(bytes: Buffer): { type: string; head: number; size: number } | null {
  if (bytes.length < 8) return null;
  const shortSize = numberAt(bytes, 0);
  const type = bytes.toString('latin1', 4, 8);
  if (shortSize === 0) return { type, head: 8, size: Infinity };
  const head = shortSize === 1 ? 16 : 8;
  const size = shortSize === 1 ? longAt(bytes, 8) : shortSize;
  return size < head ? null : { type, head, size };
}

/** Reads four bytes as a number; 0 if they are missing. */
function numberAt(bytes: Buffer, at: number): number {
  return bytes.length >= at + 4 ? bytes.readUInt32BE(at) : 0;
}

/** Reads eight bytes as a number, not exact above 2^53; 0 if they are missing. */
function longAt(bytes: Buffer, at: number): number {
  return numberAt(bytes, at) * 2 ** 32 + numberAt(bytes, at + 4);
}
