import { FairSemaphore } from '../../lib/fair-semaphore.ts';
import type { ImageFacts, Media, MediaFile } from '../../ports/media.ts';
import type { parseFromTokenizer } from 'music-metadata';
import type { fromFile } from 'strtok3';
import { FileWindow } from './file-window.ts';
import { jpegIsComplete } from './jpeg-end.ts';
import { mp4Duration } from './mp4-duration.ts';
import { oggDuration } from './ogg-duration.ts';
import { wavDuration } from './wav-duration.ts';
import { webmDuration } from './webm-duration.ts';

/** The parser of MP3 files, which have frames of many kinds. */
interface Parser {
  readonly parseFromTokenizer: typeof parseFromTokenizer;
  readonly fromFile: typeof fromFile;
}

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
    const facts = await this.#reads.run(owner, () => imageFacts(path));
    if (facts === null) return null;
    // The decoder ignores damage inside the scans of a JPEG. So its header and end marker say as much as decoding all of it,
    // at a twentieth of the cost.
    if (facts.mimeType === 'image/jpeg') return (await jpegIsComplete(file)) ? facts : null;
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
    return this.#reads.run(owner, () => durationOf(path, mimeType));
  }
}

/** The readers of durations by declared MIME type; MP3 has the parser. */
const durationReaders: Readonly<Record<string, (file: FileWindow, mayContinue: () => boolean) => Promise<number | undefined>>> = {
  'audio/mp4': mp4Duration,
  'video/mp4': mp4Duration,
  'audio/webm': webmDuration,
  'video/webm': webmDuration,
  'audio/ogg': oggDuration,
  'audio/wav': wavDuration,
};

async function durationOf(path: string, mimeType: string): Promise<number | undefined> {
  const readDuration = durationReaders[mimeType];
  // Loaded outside of the time limit: on a busy machine that can take as long as the limit.
  const parser = readDuration === undefined ? await loadParser() : null;
  return withTimeout(DURATION_TIMEOUT_MS, async (signal) => {
    if (parser !== null) return parse(parser, path, signal);
    return FileWindow.use(path, async (file) => readDuration?.(file, () => !signal.aborted)).catch(() => undefined);
  });
}

async function loadParser(): Promise<Parser> {
  const [{ parseFromTokenizer }, { fromFile }] = await Promise.all([import('music-metadata'), import('strtok3')]);
  return { parseFromTokenizer, fromFile };
}

async function parse({ parseFromTokenizer, fromFile }: Parser, path: string, signal: AbortSignal): Promise<number | undefined> {
  const file = await fromFile(path);
  // The parser has no way to stop it, and a file that only resembles audio keeps it busy for minutes. This makes its next read fail.
  signal.addEventListener('abort', () => void file.close());
  try {
    signal.throwIfAborted();
    const { format } = await parseFromTokenizer(file, { duration: true, skipCovers: true });
    const ms = Math.round((format.duration ?? 0) * 1000);
    return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
  } catch {
    // The parser throws on files that it cannot parse.
    return undefined;
  } finally {
    await file.close();
  }
}

/** Returns the result of `work`; undefined if it takes longer than `ms` milliseconds, which aborts its signal. */
async function withTimeout<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      controller.abort();
      resolve(undefined);
    }, ms);
  });
  try {
    return await Promise.race([work(controller.signal), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
