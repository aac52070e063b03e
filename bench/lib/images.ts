import sharp from 'sharp';

/** Brightness of the large shapes of a picture at its corners. */
const coarse = 12;

/**
 * Creates JPEGs that look like photographs to a decoder, all different: large smooth shapes under fine noise. Each has
 * at most `bytes` bytes and at least 95 % of that; the same arguments give the same images.
 */
export async function makeImages(
  count: number,
  { width, height, bytes }: { width: number; height: number; bytes: number },
): Promise<Buffer[]> {
  const images: Buffer[] = [];
  for (let i = 0; i < count; i += 1) images.push(await imageOf(i + 1, width, height, bytes));
  return images;
}

async function imageOf(seed: number, width: number, height: number, bytes: number): Promise<Buffer> {
  const random = randomFrom(seed);
  const corners = Buffer.from(Array.from({ length: coarse * coarse * 3 }, () => 40 + random() * 176));
  const smooth = await sharp(corners, { raw: { width: coarse, height: coarse, channels: 3 } })
    .resize(width, height, { fit: 'fill', kernel: 'cubic' })
    .raw()
    .toBuffer();
  // Rows of noise start anywhere in a table: as random to an encoder, but much faster than a number per sample.
  const table = Float32Array.from({ length: 65_536 }, () => (random() + random() + random() - 1.5) * 36);
  for (let at = 0, from = 0; at < smooth.length; at += 1) {
    if (at % (width * 3) === 0) from = Math.floor(random() * table.length);
    smooth[at] = Math.max(0, Math.min(255, smooth[at]! + table[(from + at) & 0xffff]!));
  }
  return ofSize(smooth, width, height, bytes);
}

/** Encodes the picture at the highest quality that fits. */
async function ofSize(pixels: Buffer, width: number, height: number, bytes: number): Promise<Buffer> {
  let fitting: Buffer | null = null;
  for (let low = 20, high = 98; low <= high;) {
    const quality = (low + high) >> 1;
    const image = await sharp(pixels, { raw: { width, height, channels: 3 } })
      .jpeg({ quality })
      .toBuffer();
    if (image.length <= bytes) {
      fitting = image;
      low = quality + 1;
    } else {
      high = quality - 1;
    }
  }
  if (fitting === null || fitting.length < bytes * 0.95)
    throw new Error(`no quality gives a JPEG of ${bytes} bytes; the nearest has ${fitting?.length ?? 0}`);
  return fitting;
}

/** Pseudo-random numbers from 0 to 1, determined by the seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
