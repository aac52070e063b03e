/** The size of the longest frame: 160 kbit/s at 8 kHz in layer II. */
export const MAX_FRAME_BYTES = 2_881;

const ID3_HEAD_BYTES = 10;
/** Size of the tag ID3v1, which begins with `TAG`. */
const ID3_END_BYTES = 128;
/** Where the description by the encoder Fraunhofer begins. */
const VBRI_AT = 36;
const MONO = 3;
/** The bits of a header that are the same in all frames of a stream: version, layer and sample rate. */
const KIND_BITS = 0xfffe0c00;

/** Kilobits per second by the four bits in a header; 0 where the size of a frame cannot be known. */
const bitRates: Readonly<Record<'1' | '2', readonly (readonly number[])[]>> = {
  1: [
    [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0],
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
  ],
  2: [
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
  ],
};
/** Of MPEG-1, in Hz; MPEG-2 has half of it, and 2.5 a quarter. */
const sampleRates = [44_100, 48_000, 32_000];
const rateDivisors = [4, 0, 2, 1];

/** The properties of a frame, from its header. */
export interface Mp3Frame {
  /** Size in bytes, with its header. */
  readonly size: number;
  readonly ms: number;
  /** Equal for all frames of a stream. */
  readonly kind: number;
}

/**
 * Reads the header of a frame of MPEG audio at an offset; null if there is none, or its size is not stated (free
 * format).
 */
export function frameAt(bytes: Buffer, at: number): Mp3Frame | null {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return null;
  const header = bytes.readUInt32BE(at);
  const version = (header >>> 19) & 3;
  const layer = 4 - ((header >>> 17) & 3);
  const divisor = rateDivisors[version] ?? 0;
  const rate = (sampleRates[(header >>> 10) & 3] ?? 0) / (divisor || 1);
  if (header >>> 21 !== 0x7ff || layer === 4 || divisor === 0 || rate === 0) return null;
  const bits = (bitRates[divisor === 1 ? 1 : 2][layer - 1]?.[(header >>> 12) & 15] ?? 0) * 1_000;
  if (bits === 0) return null;
  const padding = (header >>> 9) & 1;
  const samples = layer === 1 ? 384 : layer === 3 && divisor > 1 ? 576 : 1_152;
  const slots = layer === 1 ? 4 : 1;
  const size = (Math.floor((samples / 8 / slots) * (bits / rate)) + padding) * slots;
  return { size, ms: (samples * 1_000) / rate, kind: (header & KIND_BITS) >>> 0 };
}

/** Whether the frame that `bytes` begin with has a description of the stream (Xing, Info or VBRI) instead of sound. */
export function isDescription(bytes: Buffer, { kind }: Mp3Frame): boolean {
  const isMpeg1 = (kind & 0x00180000) === 0x00180000;
  const isMono = (bytes[3] ?? 0) >> 6 === MONO;
  const at = 4 + (isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17);
  const name = bytes.toString('latin1', at, at + 4);
  return name === 'Xing' || name === 'Info' || bytes.toString('latin1', VBRI_AT, VBRI_AT + 4) === 'VBRI';
}

/** Returns the size of the tag (ID3v1, ID3v2) that `bytes` begin with; 0 if they begin with none. */
export function tagSize(bytes: Buffer): number {
  const name = bytes.toString('latin1', 0, 3);
  if (name === 'TAG') return ID3_END_BYTES;
  if (name !== 'ID3' || bytes.length < ID3_HEAD_BYTES) return 0;
  const hasFooter = ((bytes[5] ?? 0) & 0x10) !== 0;
  // Four bytes of seven bits each.
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((bytes[at] ?? 0) & 0x7f), 0);
  return ID3_HEAD_BYTES + size + (hasFooter ? ID3_HEAD_BYTES : 0);
}
