import { setImmediate as nextIteration } from 'node:timers/promises';
import { type Mp3Frame, frameAt, isDescription, MAX_FRAME_BYTES, tagSize } from './mp3-frame.ts';
import type { FileWindow } from './file-window.ts';

/** The longest frame, and the beginning of what follows it. */
const LOOK_AHEAD_BYTES = MAX_FRAME_BYTES + 10;
/** How many frames and other bytes are looked at without a break for other work of the process. */
const STEPS_PER_TURN = 20_000;
const FRAME_PREFIX = 0xff;

/**
 * Returns the duration of an MP3 file (MPEG-1, 2 or 2.5, layers I to III) in milliseconds: that of all its frames,
 * wherever they are, so that joined files count whole. What encoders write about a stream, tags and other bytes between
 * frames do not count. Returns undefined if there are no frames.
 *
 * @param mayContinue called between turns of the event loop and for each read; false stops the search without a result
 */
export async function mp3Duration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  let ms = 0;
  /** The kind of the frame that ends at `offset`; null if none does. */
  let kind: number | null = null;
  for (let offset = 0, steps = 1; offset < file.size; steps++) {
    if (steps % STEPS_PER_TURN === 0) {
      await nextIteration();
      if (!mayContinue()) return undefined;
    }
    let bytes = file.peek(offset, LOOK_AHEAD_BYTES);
    if (bytes === null) {
      if (!mayContinue()) return undefined;
      bytes = await file.at(offset, LOOK_AHEAD_BYTES);
    }
    const frame = frameAt(bytes, 0);
    if (frame !== null && (frame.kind === kind || isFollowed(bytes, frame))) {
      if (!isDescription(bytes, frame)) ms += frame.ms;
      kind = frame.kind;
      offset += frame.size;
    } else {
      kind = null;
      offset += tagSize(bytes) || nextCandidate(bytes);
    }
  }
  const rounded = Math.round(ms);
  return rounded > 0 ? rounded : undefined;
}

/**
 * Whether a frame is followed by another one of its stream, by a tag or by the end of the file. What merely resembles a
 * frame is not.
 */
function isFollowed(bytes: Buffer, { size, kind }: Mp3Frame): boolean {
  if (bytes.length <= size) return bytes.length === size;
  const rest = bytes.subarray(size);
  return frameAt(rest, 0)?.kind === kind || tagSize(rest) > 0;
}

/** The distance to the next byte with which a frame may begin; to the end of the bytes if there is none. */
function nextCandidate(bytes: Buffer): number {
  const next = bytes.indexOf(FRAME_PREFIX, 1);
  return next === -1 ? bytes.length : next;
}
