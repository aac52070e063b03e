import type { MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';

const END_OF_IMAGE = Buffer.from([0xff, 0xd9]);
const MARKER_PREFIX = 0xff;
const START_OF_SCAN = 0xda;
/** Offset of the first segment, after the two bytes that every JPEG begins with. */
const FIRST_SEGMENT = 2;
/** Minimum size of a segment: prefix, marker and length. */
const MIN_SEGMENT_BYTES = 4;

/** Where a walk over segments has stopped: at a scan, or at the end of the buffer. */
interface Walk {
  readonly at: number;
  readonly stoppedBy: 'scan' | 'end';
}

/**
 * Whether a JPEG has its end marker, so that it is not truncated. Bytes after that, as in motion photos of phones, are
 * ignored. Reads the file at most once, in parts, and takes time in proportion to its size.
 */
export async function jpegIsComplete(file: MediaFile): Promise<boolean> {
  const { head, tail } = file;
  // Most files end with the marker, and then their scans need not be searched.
  if (tail.equals(END_OF_IMAGE) && walkSegments(head, FIRST_SEGMENT).stoppedBy === 'scan') return true;
  return endsAfterScan(new FileWindow(file));
}

async function endsAfterScan(file: FileWindow): Promise<boolean> {
  // Only from the first scan on, because the preview inside EXIF data has an end marker too.
  for (let offset = await findScan(file); offset < file.size; ) {
    const bytes = await file.at(offset, 2);
    if (bytes.includes(END_OF_IMAGE)) return true;
    offset += Math.max(1, bytes.length - 1);
  }
  return false;
}

/** Returns the offset of the first scan; the size of the file if there is none. */
async function findScan(file: FileWindow): Promise<number> {
  for (let offset = FIRST_SEGMENT; offset < file.size; ) {
    const { at, stoppedBy } = walkSegments(await file.at(offset, MIN_SEGMENT_BYTES), 0);
    if (stoppedBy === 'scan') return offset + at;
    if (at === 0) break;
    offset += at;
  }
  return file.size;
}

/**
 * Goes from segment to segment, through the whole buffer at once: a file can consist of segments of four bytes, or of millions
 * of the fill bytes that may precede a marker, and a read for each of them would take minutes.
 */
function walkSegments(bytes: Buffer, start: number): Walk {
  let at = start;
  while (at + MIN_SEGMENT_BYTES <= bytes.length) {
    if (bytes[at] !== MARKER_PREFIX) {
      // Decoders skip stray bytes before a marker.
      const next = bytes.indexOf(MARKER_PREFIX, at);
      at = next === -1 ? bytes.length : next;
      continue;
    }
    const marker = bytes[at + 1] ?? 0;
    if (marker === START_OF_SCAN) return { at, stoppedBy: 'scan' };
    at += marker === MARKER_PREFIX ? 1 : hasNoLength(marker) ? 2 : 2 + bytes.readUInt16BE(at + 2);
  }
  return { at, stoppedBy: 'end' };
}

/** Whether a marker stands alone: a stuffed zero, TEM or RST0 to RST7. Decoders skip them between segments. */
function hasNoLength(marker: number): boolean {
  return marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd7);
}
