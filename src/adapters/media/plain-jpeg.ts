import type { MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';

const END_OF_IMAGE = Buffer.from([0xff, 0xd9]);
const MARKER_PREFIX = 0xff;
const BASELINE_FRAME = 0xc0;
const EXTENDED_FRAME = 0xc1;
const HUFFMAN_TABLES = 0xc4;
const START_OF_SCAN = 0xda;
const QUANTIZATION_TABLES = 0xdb;
const RESTART_INTERVAL = 0xdd;
const COMMENT = 0xfe;
/** Offset of the first segment, after the two bytes that every JPEG begins with. */
const FIRST_SEGMENT = 2;
/** A prefix and a marker; the length that follows counts itself. */
const MARKER_BYTES = 2;
/** Segments before the scan that are looked at. Files of cameras have some twenty. */
const MAX_SEGMENTS = 200;
/** Blocks of all components that a decoder takes at once. */
const MAX_BLOCKS = 10;

interface Component {
  readonly id: number;
  readonly blocks: number;
  readonly quantization: number;
}

/** The tables and components that the segments before a scan have defined. */
interface Definitions {
  readonly quantization: Set<number>;
  /** Class (0 is DC, 1 is AC) times 16, plus the number of the table. */
  readonly huffman: Set<number>;
  components: readonly Component[];
}

/**
 * Whether a JPEG decodes for certain, as its structure tells: the usual segments one after the other, one sequential
 * scan with all tables that it needs, and an end marker after it, whatever follows that. Within such a scan decoders
 * ignore damage. False says nothing: decode the file. Reads the file at most once, in parts, and takes time in
 * proportion to its size.
 */
export async function jpegIsPlain(file: MediaFile): Promise<boolean> {
  const window = new FileWindow(file);
  const scan = await plainScan(window);
  if (scan === null) return false;
  return (file.tail.equals(END_OF_IMAGE) && file.size >= scan + END_OF_IMAGE.length) || endsAfter(window, scan);
}

/** Returns the offset of the data of the only scan; null if the file has none, or anything unusual before it. */
async function plainScan(file: FileWindow): Promise<number | null> {
  const defined: Definitions = { quantization: new Set(), huffman: new Set(), components: [] };
  for (let offset = FIRST_SEGMENT, segments = 0; segments < MAX_SEGMENTS; segments++) {
    const head = await file.at(offset, 2 * MARKER_BYTES);
    if (head.length < 2 * MARKER_BYTES || head[0] !== MARKER_PREFIX) return null;
    const marker = head[1] ?? 0;
    const size = head.readUInt16BE(MARKER_BYTES);
    const end = offset + MARKER_BYTES + size;
    if (size < 2 || end > file.size) return null;
    if (!isSkipped(marker)) {
      const content = (await file.at(offset, MARKER_BYTES + size)).subarray(2 * MARKER_BYTES, MARKER_BYTES + size);
      if (marker === START_OF_SCAN) return isComplete(content, defined) ? end : null;
      if (!define(marker, content, defined)) return null;
    }
    offset = end;
  }
  return null;
}

/** Whether a segment has no influence on the decoding of pixels: restart interval, comment and APP0 to APP15. */
function isSkipped(marker: number): boolean {
  return marker === RESTART_INTERVAL || marker === COMMENT || (marker >= 0xe0 && marker <= 0xef);
}

/** Adds what a segment defines. Returns false if its kind or content is unusual. */
function define(marker: number, content: Buffer, defined: Definitions): boolean {
  if (marker === QUANTIZATION_TABLES) return defineQuantization(content, defined.quantization);
  if (marker === HUFFMAN_TABLES) return defineHuffman(content, defined.huffman);
  if ((marker !== BASELINE_FRAME && marker !== EXTENDED_FRAME) || defined.components.length > 0) return false;
  defined.components = componentsOf(content);
  return defined.components.length > 0;
}

function defineQuantization(content: Buffer, tables: Set<number>): boolean {
  let at = 0;
  for (; at < content.length;) {
    const head = content[at] ?? 0;
    if ((head & 0x0f) > 3 || head >> 4 > 1) return false;
    tables.add(head & 0x0f);
    at += head >> 4 === 0 ? 65 : 129;
  }
  return at === content.length;
}

function defineHuffman(content: Buffer, tables: Set<number>): boolean {
  let at = 0;
  for (; at < content.length;) {
    const head = content[at] ?? 0;
    const counts = content.subarray(at + 1, at + 17);
    const total = counts.reduce((sum, count) => sum + count, 0);
    const symbols = content.subarray(at + 17, at + 17 + total);
    const isDc = head < 0x10;
    if ((head & 0x0f) > 3 || head > 0x1f || total > 256 || symbols.length < total || !areCodes(counts)) return false;
    if (isDc && symbols.some((symbol) => symbol > 15)) return false;
    tables.add(head);
    at += 17 + total;
  }
  return at === content.length;
}

/** Whether there are codes for so many symbols of each length, none of which has only ones. */
function areCodes(counts: Buffer): boolean {
  let code = 0;
  return counts.every((count, index) => {
    const next = code + count;
    code = next * 2;
    return next < 2 ** (index + 1);
  });
}

/** Reads a frame of 8 bits with one or three components, sampled as usual; returns none for any other. */
function componentsOf(frame: Buffer): readonly Component[] {
  const count = frame[5] ?? 0;
  if (frame[0] !== 8 || (count !== 1 && count !== 3) || frame.length !== 6 + 3 * count) return [];
  const components: Component[] = [];
  for (let at = 6; at < frame.length; at += 3) {
    const [id = 0, sampling = 0, quantization = 0] = frame.subarray(at, at + 3);
    const [across, down] = [sampling >> 4, sampling & 0x0f];
    const isUsual = [1, 2, 4].includes(across) && [1, 2, 4].includes(down);
    if (!isUsual || components.some((other) => other.id === id)) return [];
    components.push({ id, blocks: across * down, quantization });
  }
  return components.reduce((sum, { blocks }) => sum + blocks, 0) <= MAX_BLOCKS ? components : [];
}

/**
 * Whether the header of a scan names all components in turn and tables that are defined, and all coefficients at once.
 */
function isComplete(scan: Buffer, { components, quantization, huffman }: Definitions): boolean {
  const count = components.length;
  if (count === 0 || scan.length !== 4 + 2 * count || scan[0] !== count) return false;
  if (scan.readUIntBE(1 + 2 * count, 3) !== 0x003f00) return false;
  return components.every((component, index) => {
    const tables = scan[2 + 2 * index] ?? 0;
    const areDefined =
      quantization.has(component.quantization) && huffman.has(tables >> 4) && huffman.has(0x10 | (tables & 0x0f));
    return scan[1 + 2 * index] === component.id && areDefined;
  });
}

/**
 * Whether there is an end marker at or after an offset. Only from the scan on, because the preview inside EXIF data has
 * one too.
 */
async function endsAfter(file: FileWindow, start: number): Promise<boolean> {
  for (let offset = start; offset < file.size;) {
    const bytes = await file.at(offset, END_OF_IMAGE.length);
    if (bytes.includes(END_OF_IMAGE)) return true;
    offset += Math.max(1, bytes.length - 1);
  }
  return false;
}
