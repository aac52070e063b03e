import type * as FileType from 'file-type';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { FairSemaphore } from '../../lib/concurrency/fair-semaphore.ts';
import { importModule } from '../../lib/process/import-module.ts';
import type { ImageFacts, Media, MediaFile } from '../../ports/media.ts';
import { FileWindow } from './file-window.ts';
import { withImageInput } from './image-input.ts';
import { isRecordedByBrowser } from './matroska.ts';
import { mp3Duration } from './mp3-duration.ts';
import { mp4Duration } from './mp4-duration.ts';
import { oggDuration } from './ogg-duration.ts';
import { jpegIsPlain } from './plain-jpeg.ts';
import { wavDuration } from './wav-duration.ts';
import { webmDuration } from './webm-duration.ts';

const DURATION_TIMEOUT_MS = 2_000;
const MAX_CONCURRENT_READS = 4;
/**
 * Images up to this size, which take some 20 ms, have a decoder of their own, so that they do not wait for large ones.
 */
const SMALL_PIXELS = 2_000_000;

/**
 * Media by means of sharp and file-type. Each library is loaded with the first file that needs it. A process decodes one
 * large and one small image at a time and reads a few other files, users in turn, so that it goes on serving requests: N
 * processes, on one machine or several, decode N. What one user may decode in all of them is bounded by the pixels per
 * minute that `admit` counts in shared memory.
 */
export class LocalMedia implements Media {
  readonly #decoders = new FairSemaphore(1);
  readonly #smallDecoders = new FairSemaphore(1);
  readonly #reads = new FairSemaphore(MAX_CONCURRENT_READS);

  async sniff({ head }: MediaFile): Promise<string | undefined> {
    try {
      const { fileTypeFromBuffer } = (await importModule('file-type')) as typeof FileType;
      const found = await fileTypeFromBuffer(head);
      const mimeType = found?.mime.split(';', 1).join();
      return mimeType === 'video/matroska' && isRecordedByBrowser(head) ? 'video/webm' : mimeType;
    } catch {
      return undefined;
    }
  }

  async image(file: MediaFile, admit: (pixels: number) => Promise<void>): Promise<ImageFacts | null> {
    const { asDisplayed, imageHeader, imageDecodes } = await import('./images.ts');
    const { userKey, head } = file;
    // Of most types the first bytes are enough.
    const header = await this.#reads.run(
      userKey,
      async () => (await imageHeader(head)) ?? (await withImageInput(file, imageHeader)),
    );
    if (header === null) return null;
    const { facts, isProgressive } = header;
    const pixels = facts.width * facts.height;
    // The decoder ignores damage inside the scan of a plain JPEG. So its structure says as much as decoding all of it,
    // at a twentieth of the cost. Its thumbnail is decoded at an eighth of its size, in a sixth of the time.
    if (facts.mimeType === 'image/jpeg' && !isProgressive && (await this.#reads.run(userKey, () => jpegIsPlain(file))))
      return facts;
    await admit(pixels);
    const decoders = pixels <= SMALL_PIXELS ? this.#smallDecoders : this.#decoders;
    return (await decoders.run(userKey, () => withImageInput(file, imageDecodes))) ? asDisplayed(facts, head) : null;
  }

  async thumbnail(image: Buffer): Promise<Buffer | null> {
    const { makeThumbnail } = await import('./images.ts');
    return this.#decoders.run('', () => makeThumbnail(image));
  }

  duration(file: MediaFile, mimeType: string): Promise<number | undefined> {
    return this.#reads.run(file.userKey, () => durationOf(file, mimeType));
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

function durationOf(file: MediaFile, mimeType: string): Promise<number | undefined> {
  const readDuration = durationReaders[mimeType] ?? mp3Duration;
  let isLate = false;
  // Files that cannot be parsed, and reads after the file was closed, make a reader throw.
  const duration = readDuration(new FileWindow(file), () => !isLate).catch(() => undefined);
  return withTimeout(DURATION_TIMEOUT_MS, duration, () => {
    isLate = true;
    return undefined;
  });
}
