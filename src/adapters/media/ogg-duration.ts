import type { FileWindow } from './file-window.ts';

const PAGE = Buffer.from('OggS');
const PAGE_HEAD_BYTES = 27;
/** A page has a header, at most 255 lengths, and at most 255 bytes per length. */
const MAX_PAGE_BYTES = PAGE_HEAD_BYTES + 255 + 255 * 255;
const FIRST_PAGE_OF_STREAM = 2;
/** Streams whose first pages are read. */
const MAX_STREAMS = 10;
/** Positions of Opus count at this rate, whatever the rate of the input was. */
const OPUS_RATE = 48_000;

/** The properties of a stream, from its first packet. */
interface Stream {
  readonly serial: number;
  /** Units of its positions per second. */
  readonly rate: number;
  /** Units at its start that are not played. */
  readonly skipped: number;
}

/**
 * Returns the duration of an Ogg file with Opus, Vorbis, FLAC or Speex in milliseconds: the position in the last page
 * of its first audio stream. Returns undefined if there is none.
 *
 * @param mayContinue called for each read; false stops the search
 */
export async function oggDuration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  const stream = await firstStream(file);
  if (stream === null || stream.rate === 0) return undefined;
  // The last page is in this part, unless the file is truncated or another stream is longer.
  for (
    let start = Math.max(0, file.size - MAX_PAGE_BYTES);
    mayContinue();
    start = Math.max(0, start - MAX_PAGE_BYTES)
  ) {
    const bytes = (await file.at(start, Math.min(file.size - start, 2 * MAX_PAGE_BYTES))).subarray(
      0,
      2 * MAX_PAGE_BYTES,
    );
    const position = lastPosition(bytes, stream.serial);
    if (position !== null) return milliseconds((position - stream.skipped) / stream.rate);
    if (start === 0) return undefined;
  }
  return undefined;
}

async function firstStream(file: FileWindow): Promise<Stream | null> {
  for (let offset = 0, streams = 0; offset < file.size && streams < MAX_STREAMS; streams++) {
    const bytes = await file.at(offset, MAX_PAGE_BYTES);
    if (bytes.length < PAGE_HEAD_BYTES || !bytes.subarray(0, 4).equals(PAGE)) return null;
    if (((bytes[5] ?? 0) & FIRST_PAGE_OF_STREAM) === 0) return null;
    const lengths = bytes.subarray(PAGE_HEAD_BYTES, PAGE_HEAD_BYTES + (bytes[26] ?? 0));
    const content = PAGE_HEAD_BYTES + lengths.length;
    const size = lengths.reduce((sum, length) => sum + length, 0);
    const codec = codecOf(bytes.subarray(content, content + size));
    if (codec !== null) return { serial: bytes.readUInt32LE(14), ...codec };
    offset += content + size;
  }
  return null;
}

function codecOf(packet: Buffer): Omit<Stream, 'serial'> | null {
  const begins = (text: string, least: number): boolean =>
    packet.length >= least && packet.toString('latin1', 0, text.length) === text;
  if (begins('OpusHead', 12)) return { rate: OPUS_RATE, skipped: packet.readUInt16LE(10) };
  if (begins('\x01vorbis', 16)) return { rate: packet.readUInt32LE(12), skipped: 0 };
  if (begins('Speex   ', 40)) return { rate: packet.readUInt32LE(36), skipped: 0 };
  // The rate has 20 bits.
  return begins('\x7fFLAC', 30) ? { rate: packet.readUIntBE(27, 3) >>> 4, skipped: 0 } : null;
}

/** Returns the position of the last complete page of a stream that has one; null if there is none. */
function lastPosition(bytes: Buffer, serial: number): number | null {
  for (let at = bytes.lastIndexOf(PAGE); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(PAGE, at - 1)) {
    if (
      at + PAGE_HEAD_BYTES > bytes.length ||
      bytes.readUInt32LE(at + 14) !== serial ||
      pageEnd(bytes, at) > bytes.length
    )
      continue;
    // All bits are set if no packet ends on the page.
    const high = bytes.readInt32LE(at + 10);
    if (high >= 0) return high * 2 ** 32 + bytes.readUInt32LE(at + 6);
  }
  return null;
}

/** Returns the offset of the end of the page that begins at an offset. */
function pageEnd(bytes: Buffer, at: number): number {
  const content = at + PAGE_HEAD_BYTES + (bytes[at + 26] ?? 0);
  return bytes.subarray(at + PAGE_HEAD_BYTES, content).reduce((sum, length) => sum + length, content);
}

function milliseconds(seconds: number): number | undefined {
  const ms = Math.round(seconds * 1_000);
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
}
