import type { MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';

const END_OF_IMAGE = Buffer.from([0xff, 0xd9]);
const MARK = 0xff;
const START_OF_SCAN = 0xda;
/** After the two bytes that every JPEG begins with. */
const FIRST_SEGMENT = 2;
/** A mark, a marker and a length. */
const LEAST_SEGMENT = 4;

/** Where a walk over segments has come to: a scan, the first byte that no segment begins with, or the end of the bytes at hand. */
interface Walk {
  readonly at: number;
  readonly stoppedBy: 'scan' | 'nonsense' | 'end';
}

/**
 * Whether a JPEG holds its end and is not cut off. What follows the end, as in the moving pictures of phones, is not looked at.
 * Reads the file at most once, in windows, and takes time in proportion to its size.
 */
export async function jpegIsWhole({ path, head, tail }: MediaFile): Promise<boolean> {
  // Most end with it, and then their scans need not be looked for.
  if (tail.equals(END_OF_IMAGE) && walkSegments(head, FIRST_SEGMENT).stoppedBy === 'scan') return true;
  return FileWindow.over(path, endsAfterScan);
}

async function endsAfterScan(file: FileWindow): Promise<boolean> {
  // Only from the first scan on: the small picture inside of EXIF has an end too.
  for (let offset = await scanOf(file); offset < file.size; ) {
    const bytes = await file.at(offset, 2);
    if (bytes.includes(END_OF_IMAGE)) return true;
    offset += Math.max(1, bytes.length - 1);
  }
  return false;
}

/** Where the first scan begins; the size of the file when there is none. */
async function scanOf(file: FileWindow): Promise<number> {
  for (let offset = FIRST_SEGMENT; offset < file.size; ) {
    const { at, stoppedBy } = walkSegments(await file.at(offset, LEAST_SEGMENT), 0);
    if (stoppedBy === 'scan') return offset + at;
    if (stoppedBy === 'nonsense' || at === 0) break;
    offset += at;
  }
  return file.size;
}

/**
 * Goes from segment to segment. All that is at hand is walked at once: a file can consist of segments of four bytes, or of a
 * single one after millions of the fill bytes that may precede a marker, and a read for each of them takes minutes.
 */
function walkSegments(bytes: Buffer, start: number): Walk {
  let at = start;
  while (at + LEAST_SEGMENT <= bytes.length) {
    if (bytes[at] !== MARK) return { at, stoppedBy: 'nonsense' };
    const marker = bytes[at + 1];
    if (marker === START_OF_SCAN) return { at, stoppedBy: 'scan' };
    at += marker === MARK ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return { at, stoppedBy: 'end' };
}
