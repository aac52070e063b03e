import type * as FileType from 'file-type';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { FairSemaphore } from '../../lib/concurrency/fair-semaphore.ts';
import { importModule } from '../../lib/process/import-module.ts';
import type { ImageFacts, Media, MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';
import { withImageInput } from './image-input.ts';
import { jpegIsComplete } from './jpeg-end.ts';
import { mp4Duration } from './mp4-duration.ts';
import { oggDuration } from './ogg-duration.ts';
import { wavDuration } from './wav-duration.ts';
import { webmDuration } from './webm-duration.ts';

const DURATION_TIMEOUT_MS = 2_000;
const MAX_CONCURRENT_READS = 4;
/** Images up to this size, which take some 20 ms, have a decoder of their own, so that they do not wait for large ones. */
const SMALL_PIXELS = 2_000_000;

/** Media by means of sharp, file-type and music-metadata. Each library is loaded with the first file that needs it. */
export class LocalMedia implements Media {
  readonly #decoders = new FairSemaphore(1);
  readonly #smallDecoders = new FairSemaphore(1);
  readonly #reads = new FairSemaphore(MAX_CONCURRENT_READS);

  async sniff({ head }: MediaFile): Promise<string | undefined> {
    try {
      const { fileTypeFromBuffer } = (await importModule('file-type')) as typeof FileType;
      const found = await fileTypeFromBuffer(head);
      return found?.mime.split(';', 1).join();
    } catch {
      return undefined;
    }
  }

  async image(file: MediaFile, admit: (pixels: number) => Promise<void>): Promise<ImageFacts | null> {
    const { imageHeader, imageDecodes } = await import('./images.ts');
    const { owner, head } = file;
    // Of most types the first bytes are enough.
    const header = await this.#reads.run(owner, async () => (await imageHeader(head)) ?? (await withImageInput(file, imageHeader)));
    if (header === null) return null;
    const { facts, isProgressive } = header;
    const pixels = facts.width * facts.height;
    const isJpeg = facts.mimeType === 'image/jpeg';
    // The thumbnail of any other JPEG is decoded at an eighth of its size, in a sixth of the time.
    if (!isJpeg || isProgressive) await admit(pixels);
    // The decoder ignores damage inside the scans of a JPEG. So its header and end marker say as much as decoding all of it,
    // at a twentieth of the cost.
    if (isJpeg) return (await jpegIsComplete(file)) ? facts : null;
    const decoders = pixels <= SMALL_PIXELS ? this.#smallDecoders : this.#decoders;
    return (await decoders.run(owner, () => withImageInput(file, imageDecodes))) ? facts : null;
  }

  async thumbnail(image: Buffer): Promise<Buffer | null> {
    const { makeThumbnail } = await import('./images.ts');
    return this.#decoders.run('', () => makeThumbnail(image));
  }

  duration(file: MediaFile, mimeType: string): Promise<number | undefined> {
    return this.#reads.run(file.owner, () => durationOf(file, mimeType));
  }
}

type DurationReader = (file: FileWindow, mayContinue: () => boolean) => Promise<number | undefined>;

/** The readers of durations by declared MIME type; the others are read as MP3. */
const durationReaders: Readonly<Record<string, DurationReader>> = {
  'audio/mp4': mp4Duration,
  'video/mp4': mp4Duration,
  'audio/webm': webmDuration,
  'video/webm': webmDuration,
  'audio/ogg': oggDuration,
  'audio/wav': wavDuration,
};

async function durationOf(file: MediaFile, mimeType: string): Promise<number | undefined> {
  // Loaded outside of the time limit: on a busy machine that can take as long as the limit.
  const readDuration = durationReaders[mimeType] ?? (await import('./mp3-duration.ts')).mp3Duration;
  let isLate = false;
  // Files that cannot be parsed, and reads after the file was closed, make a reader throw.
  const duration = readDuration(new FileWindow(file), () => !isLate).catch(() => undefined);
  return withTimeout(DURATION_TIMEOUT_MS, duration, () => {
    isLate = true;
    return undefined;
  });
}
