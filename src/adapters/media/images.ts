import sharp, { type Sharp } from 'sharp';
import type { ImageFacts } from '../../ports/media.ts';

const MOST_PIXELS = 50_000_000;
const MOST_SECONDS = 20;
const THUMBNAIL_PIXELS = 200;
const options = { failOn: 'error', limitInputPixels: MOST_PIXELS, sequentialRead: true } as const;

const types: Readonly<Record<string, string>> = { jpeg: 'image/jpeg', png: 'image/png', gif: 'image/gif', webp: 'image/webp' };

// One image at a time in one thread, and nothing kept of it: the process has other things to do.
sharp.concurrency(1);
sharp.cache(false);

/** What the head of an image tells; null for none that is accepted, and for one of too many pixels. */
export async function imageFacts(path: string): Promise<ImageFacts | null> {
  try {
    const { format, autoOrient } = await sharp(path, options).metadata();
    const mimeType = types[format];
    return mimeType === undefined ? null : { mimeType, width: autoOrient.width, height: autoOrient.height };
  } catch {
    return null;
  }
}

/** Whether the pixels of an image can be had. */
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

const limited = (image: Sharp): Sharp => image.timeout({ seconds: MOST_SECONDS });
