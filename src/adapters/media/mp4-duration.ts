import type { FileWindow } from './file-window.ts';

/** What is looked into; everything else is skipped. */
const CONTAINERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'mvex', 'moof', 'traf']);
/** As much of a box as is read at once: its head of at most 16 bytes and the fields before its lists. */
const HEAD_BYTES = 48;
const MOST_TRACKS = 100;

// Which fields a box has, from its flags.
const TFHD_DATA_OFFSET = 0x1;
const TFHD_DESCRIPTION = 0x2;
const TFHD_DURATION = 0x8;
const TRUN_DATA_OFFSET = 0x1;
const TRUN_FIRST_FLAGS = 0x4;
const TRUN_DURATION = 0x100;
const TRUN_FIELDS = [TRUN_DURATION, 0x200, 0x400, 0x800];

interface Clock {
  /** Units of time in a second; 0 while that is not known. */
  readonly scale: number;
  readonly units: number;
}

interface Track extends Clock {
  scale: number;
  units: number;
  /** How long a sample lasts that has no duration of its own. */
  sampleUnits: number;
  /** Where its latest fragment ends. */
  end: number;
}

/** The list of samples of a fragment: where it is in the file, and how long those last that have no duration of their own. */
interface Run {
  readonly start: number;
  readonly end: number;
  readonly sampleUnits: number;
}

/**
 * Milliseconds of an MP4 file: what its head says (`mvhd`, which counts edits, or else its longest track), or of one in
 * fragments, as browsers record it, the end of the latest fragment, because such a head was written before the sound.
 * Undefined when that can't be known.
 *
 * @param goOn asked at each box; false gives up
 */
export async function mp4Duration(file: FileWindow, goOn: () => boolean): Promise<number | undefined> {
  const tracks = new Map<number, Track>();
  const trackOf = (id: number): Track => tracks.get(id) ?? put(tracks, id);
  const movie = { scale: 0, units: 0 };
  let track = trackOf(0);
  let sampleUnits = 0;
  let isFragmented = false;
  for (let offset = 0; offset < file.size && goOn(); ) {
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
    if (type === 'trun') track.end += await unitsOf(file, { start: offset + head, end: offset + size, sampleUnits }, goOn);
    offset += CONTAINERS.has(type) ? head : size;
  }
  const all = [...tracks.values()];
  if (isFragmented) return latest(all.map(({ scale, end }) => ({ scale, units: end })));
  return latest([movie]) ?? latest(all);
}

/** A new track, which is kept unless there are too many. */
function put(tracks: Map<number, Track>, id: number): Track {
  const track: Track = { scale: 0, units: 0, sampleUnits: 0, end: 0 };
  if (tracks.size < MOST_TRACKS) tracks.set(id, track);
  return track;
}

/** How long the samples of a run last together. */
async function unitsOf(file: FileWindow, { start, end, sampleUnits }: Run, goOn: () => boolean): Promise<number> {
  const bytes = await file.at(start, 8);
  const flags = numberAt(bytes, 0);
  const count = numberAt(bytes, 4);
  if ((flags & TRUN_DURATION) === 0) return count * sampleUnits;
  const first = start + 8 + (flags & TRUN_DATA_OFFSET ? 4 : 0) + (flags & TRUN_FIRST_FLAGS ? 4 : 0);
  const stride = 4 * TRUN_FIELDS.filter((field) => flags & field).length;
  const stop = Math.min(end, file.size, first + count * stride);
  let units = 0;
  for (let at = first; at < stop && goOn(); at += stride) units += numberAt(file.peek(at, 4) ?? (await file.at(at, 4)), 0);
  return units;
}

/** The longest of some durations in milliseconds; undefined when none is known. */
function latest(durations: readonly Clock[]): number | undefined {
  const longest = Math.max(0, ...durations.map(({ scale, units }) => (scale === 0 ? 0 : Math.round((units * 1_000) / scale))));
  return longest > 0 && Number.isSafeInteger(longest) ? longest : undefined;
}

/** The units of time of a `mvhd` or `mdhd` box, and how many of them it lasts; all bits set stand for none known. */
function clockAt(bytes: Buffer, head: number): Clock {
  if (bytes[head] !== 1) {
    const units = numberAt(bytes, head + 16);
    return { scale: numberAt(bytes, head + 12), units: units === 2 ** 32 - 1 ? 0 : units };
  }
  const units = longAt(bytes, head + 24);
  return { scale: numberAt(bytes, head + 20), units: units >= 2 ** 63 ? 0 : units };
}

/** The box that `bytes` begin with, where its content begins and how much it takes; null when they are none. */
function boxOf(bytes: Buffer): { type: string; head: number; size: number } | null {
  if (bytes.length < 8) return null;
  const told = numberAt(bytes, 0);
  const type = bytes.toString('latin1', 4, 8);
  if (told === 0) return { type, head: 8, size: Infinity };
  const head = told === 1 ? 16 : 8;
  const size = told === 1 ? longAt(bytes, 8) : told;
  return size < head ? null : { type, head, size };
}

/** Four bytes as a number; 0 where they are not there. */
function numberAt(bytes: Buffer, at: number): number {
  return bytes.length >= at + 4 ? bytes.readUInt32BE(at) : 0;
}

/** Eight bytes as a number; 0 where they are not there. Above 2^53 it is not exact. */
function longAt(bytes: Buffer, at: number): number {
  return numberAt(bytes, at) * 2 ** 32 + numberAt(bytes, at + 4);
}
