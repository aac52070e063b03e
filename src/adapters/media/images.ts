import sharp, { type Sharp } from 'sharp';
import type { ImageFacts } from '../../ports/media.ts';

const MAX_PIXELS = 50_000_000;
const MAX_SECONDS = 20;
const THUMBNAIL_PIXELS = 200;
const options = { failOn: 'error', limitInputPixels: MAX_PIXELS, sequentialRead: true } as const;

const types: Readonly<Record<string, string>> = {
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
};

/** The contents of the header of an image. */
export interface ImageHeader {
  readonly facts: ImageFacts;
  /** Whether every part of the file has detail of the whole image, so that no decoder can skip any. */
  readonly isProgressive: boolean;
}

// One thread per image and no cache, because this process also serves requests.
sharp.concurrency(1);
sharp.cache(false);

/**
 * Reads the properties of an image, given as its content or the path of a file, from its header. Returns null if its
 * type is not accepted, or it has too many pixels.
 */
export async function imageHeader(image: Buffer | string): Promise<ImageHeader | null> {
  try {
    const { format, autoOrient, isProgressive } = await sharp(image, options).metadata();
    const mimeType = types[format];
    return mimeType === undefined
      ? null
      : { facts: { mimeType, width: autoOrient.width, height: autoOrient.height }, isProgressive };
  } catch {
    return null;
  }
}

/**
 * The properties of an image as browsers display it: a GIF fills the screen that its header states, even if its frames
 * are smaller.
 *
 * @param head the first bytes of the file
 */
export function asDisplayed(facts: ImageFacts, head: Buffer): ImageFacts {
  if (facts.mimeType !== 'image/gif') return facts;
  const width = Math.max(facts.width, head.readUInt16LE(6));
  const height = Math.max(facts.height, head.readUInt16LE(8));
  return width * height <= MAX_PIXELS ? { ...facts, width, height } : facts;
}

/** Whether the pixels of an image, given as its content or the path of a file, can be decoded. */
export async function imageDecodes(image: Buffer | string): Promise<boolean> {
  try {
    await limited(sharp(image, options)).resize(16, 16, { fit: 'fill' }).raw().toBuffer();
    return true;
  } catch {
    return false;
  }
}

/** As `Media.thumbnail`. */
export async function makeThumbnail(image: Buffer): Promise<Buffer | null> {
  try {
    return await limited(sharp(image, options))
      .autoOrient()
      .resize(THUMBNAIL_PIXELS, THUMBNAIL_PIXELS, { fit: 'cover' })
      .flatten({ background: '#ffffff' })
      .toColourspace('srgb')
      .jpeg({ quality: 80 })
      .toBuffer();
  } catch {
    return null;
  }
}

const limited = (image: Sharp): Sharp => image.timeout({ seconds: MAX_SECONDS });
