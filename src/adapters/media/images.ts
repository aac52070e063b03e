import sharp, { type Sharp } from 'sharp';
import type { ImageFacts } from '../../ports/media.ts';

const MAX_PIXELS = 50_000_000;
const MAX_SECONDS = 20;
const THUMBNAIL_PIXELS = 200;
const options = { failOn: 'error', limitInputPixels: MAX_PIXELS, sequentialRead: true } as const;

const types: Readonly<Record<string, string>> = { jpeg: 'image/jpeg', png: 'image/png', gif: 'image/gif', webp: 'image/webp' };

// One thread per image and no cache, because this process also serves requests.
sharp.concurrency(1);
sharp.cache(false);

/** Reads the properties of an image from its header; null if its type is not accepted or it has too many pixels. */
export async function imageFacts(path: string): Promise<ImageFacts | null> {
  try {
    const { format, autoOrient } = await sharp(path, options).metadata();
    const mimeType = types[format];
    return mimeType === undefined ? null : { mimeType, width: autoOrient.width, height: autoOrient.height };
  } catch {
    return null;
  }
}

/** Whether the pixels of an image can be decoded. */
export async function imageDecodes(path: string): Promise<boolean> {
  try {
    await limited(sharp(path, options)).resize(16, 16, { fit: 'fill' }).raw().toBuffer();
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
