import type { MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';

const END_OF_IMAGE = Buffer.from([0xff, 0xd9]);
const START_OF_SCAN = 0xda;

/**
 * Whether a JPEG holds its end and is not cut off. What follows the end, as in the moving pictures of phones, is of no
 * interest.
 */
export async function jpegIsWhole({ path, head, tail }: MediaFile): Promise<boolean> {
  // Most end with it, and then their scans need not be looked for.
  if (tail.equals(END_OF_IMAGE) && scanIn(head) !== null) return true;
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
  for (let offset = 2; offset < file.size; ) {
    const next = afterSegment(await file.at(offset, 4), 0);
    if (next === null) break;
    if (next === 'scan') return offset;
    offset += next;
  }
  return file.size;
}

/** As `scanOf`, in bytes at hand; null when they hold none. */
function scanIn(head: Buffer): number | null {
  for (let offset = 2; offset + 4 <= head.length; ) {
    const next = afterSegment(head, offset);
    if (next === 'scan') return offset;
    if (next === null) return null;
    offset += next;
  }
  return null;
}

/** How far the next segment is from the one at `offset`; `scan` when that is one, null when there is none. */
function afterSegment(bytes: Buffer, offset: number): number | 'scan' | null {
  const [mark = 0, marker = 0, high = 0, low = 0] = bytes.subarray(offset, offset + 4);
  if (mark !== 0xff) return null;
  if (marker === START_OF_SCAN) return 'scan';
  // A marker may be preceded by any number of 0xff.
  return marker === 0xff ? 1 : 2 + high * 256 + low;
}
