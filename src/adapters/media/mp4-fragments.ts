import { FileWindow } from './file-window.ts';

/** What is looked into; everything else is skipped. */
const CONTAINERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'mvex', 'moof', 'traf']);
/** As much of a box as is read at once: its head of at most 16 bytes and the fields before its lists. */
const HEAD_BYTES = 48;

// Which fields a box has, from its flags.
const TFHD_DATA_OFFSET = 0x1;
const TFHD_DESCRIPTION = 0x2;
const TFHD_DURATION = 0x8;
const TRUN_DATA_OFFSET = 0x1;
const TRUN_FIRST_FLAGS = 0x4;
const TRUN_DURATION = 0x100;
const TRUN_FIELDS = [TRUN_DURATION, 0x200, 0x400, 0x800];

interface Track {
  /** Units of time in a second; 0 while it is not told. */
  scale: number;
  /** How long a sample lasts that doesn't say it. */
  sampleUnits: number;
  /** Where its latest fragment ends. */
  end: number;
}

/** The list of samples of a fragment: where it is in the file, and how long those last that don't say it. */
interface Run {
  readonly start: number;
  readonly end: number;
  readonly sampleUnits: number;
}

/**
 * Milliseconds of an MP4 file in fragments, as browsers record it: its head was written before the sound, so what that
 * tells of a duration is not true. The end of the latest fragment; undefined when that can't be known, null for a file
 * without fragments.
 *
 * @param goOn asked now and then; false gives up
 */
export function mp4FragmentsDuration(path: string, goOn: () => boolean): Promise<number | undefined | null> {
  return FileWindow.over(path, async (file) => {
    const tracks = new Map<number, Track>();
    const trackOf = (id: number): Track => tracks.get(id) ?? put(tracks, id, { scale: 0, sampleUnits: 0, end: 0 });
    let track = trackOf(0);
    let sampleUnits = 0;
    let isFragmented = false;
    for (let offset = 0; offset < file.size && goOn(); ) {
      const bytes = await file.at(offset, HEAD_BYTES);
      const box = boxOf(bytes);
      if (box === null) break;
      const { type, head, size } = box;
      const flags = numberAt(bytes, head) % 2 ** 24;
      const isLong = bytes[head] === 1;
      if (type === 'mvex' || type === 'moof') isFragmented = true;
      if (type === 'tkhd') track = trackOf(numberAt(bytes, head + (isLong ? 20 : 12)));
      if (type === 'mdhd') track.scale = numberAt(bytes, head + (isLong ? 20 : 12));
      if (type === 'trex') trackOf(numberAt(bytes, head + 4)).sampleUnits = numberAt(bytes, head + 12);
      if (type === 'tfhd') {
        track = trackOf(numberAt(bytes, head + 4));
        const at = head + 8 + (flags & TFHD_DATA_OFFSET ? 8 : 0) + (flags & TFHD_DESCRIPTION ? 4 : 0);
        sampleUnits = flags & TFHD_DURATION ? numberAt(bytes, at) : track.sampleUnits;
      }
      if (type === 'tfdt') track.end = isLong ? numberAt(bytes, head + 4) * 2 ** 32 + numberAt(bytes, head + 8) : numberAt(bytes, head + 4);
      if (type === 'trun') track.end += await unitsOf(file, { start: offset + head, end: offset + size, sampleUnits }, goOn);
      offset += CONTAINERS.has(type) ? head : size;
    }
    return isFragmented ? latestEnd(tracks) : null;
  });
}

function put(tracks: Map<number, Track>, id: number, track: Track): Track {
  tracks.set(id, track);
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
  for (let at = first; at < stop && goOn(); at += stride) units += numberAt(await file.at(at, 4), 0);
  return units;
}

function latestEnd(tracks: ReadonlyMap<number, Track>): number | undefined {
  const ends = [...tracks.values()].map(({ scale, end }) => (scale === 0 ? 0 : Math.round((end * 1_000) / scale)));
  const latest = Math.max(...ends);
  return latest > 0 && Number.isSafeInteger(latest) ? latest : undefined;
}

/** The box that `bytes` begin with, where its content begins and how much it takes; null when they are none. */
function boxOf(bytes: Buffer): { type: string; head: number; size: number } | null {
  if (bytes.length < 8) return null;
  const told = numberAt(bytes, 0);
  const type = bytes.toString('latin1', 4, 8);
  if (told === 0) return { type, head: 8, size: Infinity };
  const head = told === 1 ? 16 : 8;
  const size = told === 1 ? numberAt(bytes, 8) * 2 ** 32 + numberAt(bytes, 12) : told;
  return size < head ? null : { type, head, size };
}

/** Four bytes as a number; 0 where they are not there. */
function numberAt(bytes: Buffer, at: number): number {
  return bytes.length >= at + 4 ? bytes.readUInt32BE(at) : 0;
}
