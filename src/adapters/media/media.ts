import { FairSemaphore } from '../../lib/fair-semaphore.ts';
import type { ImageFacts, Media, MediaFile } from '../../ports/media.ts';
import type { parseFromTokenizer } from 'music-metadata';
import type { fromFile } from 'strtok3';
import { FileWindow } from './file-window.ts';
import { jpegIsWhole } from './jpeg-end.ts';
import { mp4Duration } from './mp4-duration.ts';
import { oggDuration } from './ogg-duration.ts';
import { wavDuration } from './wav-duration.ts';
import { webmDuration } from './webm-duration.ts';

/** What reads MP3, which has frames of many kinds. */
interface Parser {
  readonly parseFromTokenizer: typeof parseFromTokenizer;
  readonly fromFile: typeof fromFile;
}

const DURATION_MS = 2_000;
const LOOKS_AT_ONCE = 4;
/** Images of up to so many pixels, which take some 20 ms, have a decoder of their own: they don't wait for large ones. */
const SMALL_PIXELS = 2_000_000;

/** Media through sharp, file-type and music-metadata. Each is loaded with the first file that needs it. */
export class LocalMedia implements Media {
  readonly #decoders = new FairSemaphore(1);
  readonly #smallDecoders = new FairSemaphore(1);
  readonly #looks = new FairSemaphore(LOOKS_AT_ONCE);

  async sniff({ head }: MediaFile): Promise<string | undefined> {
    try {
      const { fileTypeFromBuffer } = await import('file-type');
      const found = await fileTypeFromBuffer(head);
      return found?.mime.split(';', 1).join();
    } catch {
      return undefined;
    }
  }

  async image(file: MediaFile, admit: (pixels: number) => void): Promise<ImageFacts | null> {
    const { imageFacts, imageDecodes } = await import('./images.ts');
    const { owner, path } = file;
    const facts = await this.#looks.run(owner, () => imageFacts(path));
    if (facts === null) return null;
    // To the decoder damage inside of the scans of a JPEG is no error. So its head and its end tell the same as decoding
    // all of it, at a twentieth of the price.
    if (facts.mimeType === 'image/jpeg') return (await jpegIsWhole(file)) ? facts : null;
    const pixels = facts.width * facts.height;
    admit(pixels);
    const decoders = pixels <= SMALL_PIXELS ? this.#smallDecoders : this.#decoders;
    return (await decoders.run(owner, () => imageDecodes(path))) ? facts : null;
  }

  async thumbnail(image: Buffer): Promise<Buffer | null> {
    const { makeThumbnail } = await import('./images.ts');
    return this.#decoders.run('', () => makeThumbnail(image));
  }

  duration({ owner, path }: MediaFile, mimeType: string): Promise<number | undefined> {
    return this.#looks.run(owner, () => durationOf(path, mimeType));
  }
}

/** What reads the duration of a file, by its declared type; MP3 is left to the parser. */
const durations: Readonly<Record<string, (file: FileWindow, goOn: () => boolean) => Promise<number | undefined>>> = {
  'audio/mp4': mp4Duration,
  'video/mp4': mp4Duration,
  'audio/webm': webmDuration,
  'video/webm': webmDuration,
  'audio/ogg': oggDuration,
  'audio/wav': wavDuration,
};

async function durationOf(path: string, mimeType: string): Promise<number | undefined> {
  const find = durations[mimeType];
  // Loading the parser must not count: on a busy machine it takes as long as the file may.
  const parser = find === undefined ? await loadParser() : null;
  return withinTime(DURATION_MS, async (over) => {
    if (parser !== null) return parse(parser, path, over);
    return FileWindow.over(path, async (file) => find?.(file, () => !over.aborted)).catch(() => undefined);
  });
}

async function loadParser(): Promise<Parser> {
  const [{ parseFromTokenizer }, { fromFile }] = await Promise.all([import('music-metadata'), import('strtok3')]);
  return { parseFromTokenizer, fromFile };
}

async function parse({ parseFromTokenizer, fromFile }: Parser, path: string, over: AbortSignal): Promise<number | undefined> {
  const file = await fromFile(path);
  // The parser can't be told to stop, and what only looks like sound keeps it busy for minutes: its next read fails.
  over.addEventListener('abort', () => void file.close());
  try {
    over.throwIfAborted();
    const { format } = await parseFromTokenizer(file, { duration: true, skipCovers: true });
    const ms = Math.round((format.duration ?? 0) * 1000);
    return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
  } catch {
    // It throws on files that it cannot parse.
    return undefined;
  } finally {
    await file.close();
  }
}

/** What `work` gives, or undefined once the time is over, which aborts its signal. */
async function withinTime<T>(ms: number, work: (over: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const giveUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      over.abort();
      resolve(undefined);
    }, ms);
  });
  try {
    return await Promise.race([work(over.signal), giveUp]);
  } finally {
    clearTimeout(timer);
  }
}
