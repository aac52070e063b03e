import { Gate } from '../../lib/gate.ts';
import type { ImageFacts, Media, MediaFile } from '../../ports/media.ts';
import { jpegIsWhole } from './jpeg-end.ts';
import { mp4FragmentsDuration } from './mp4-fragments.ts';
import { webmDuration } from './webm-duration.ts';

const DURATION_MS = 2_000;
const LOOKS_AT_ONCE = 4;

/** Media through sharp, file-type and music-metadata. Each is loaded with the first file that needs it. */
export class LocalMedia implements Media {
  readonly #decoders = new Gate(1);
  readonly #looks = new Gate(LOOKS_AT_ONCE);

  async sniff({ head }: MediaFile): Promise<string | undefined> {
    try {
      const { fileTypeFromBuffer } = await import('file-type');
      const found = await fileTypeFromBuffer(head);
      return found?.mime.split(';', 1).join();
    } catch {
      return undefined;
    }
  }

  async image(file: MediaFile): Promise<ImageFacts | null> {
    const { imageFacts, imageDecodes } = await import('./images.ts');
    const facts = await this.#looks.run(() => imageFacts(file.path));
    if (facts === null) return null;
    // To the decoder damage inside of the scans of a JPEG is no error. So its head and its end say the same as decoding
    // all of it, at a twentieth of the price.
    const isSound = facts.mimeType === 'image/jpeg' ? await jpegIsWhole(file) : await this.#decoders.run(() => imageDecodes(file.path));
    return isSound ? facts : null;
  }

  async thumbnail(image: Buffer): Promise<Buffer | null> {
    const { makeThumbnail } = await import('./images.ts');
    return this.#decoders.run(() => makeThumbnail(image));
  }

  duration({ path }: MediaFile, mimeType: string): Promise<number | undefined> {
    return this.#looks.run(() => withinTime(DURATION_MS, (over) => durationOf(path, mimeType, over)));
  }
}

async function durationOf(path: string, mimeType: string, over: AbortSignal): Promise<number | undefined> {
  const goOn = (): boolean => !over.aborted;
  if (mimeType.endsWith('/mp4')) {
    // Of fragments the parser tells what the head says, which was written before they were.
    const ofFragments = await mp4FragmentsDuration(path, goOn).catch(() => undefined);
    if (ofFragments !== null) return ofFragments;
  }
  const parsed = await parse(path, over);
  if (parsed !== undefined && parsed > 0) return parsed;
  return mimeType.endsWith('/webm') ? await webmDuration(path, goOn).catch(() => undefined) : undefined;
}

async function parse(path: string, over: AbortSignal): Promise<number | undefined> {
  const [{ parseFromTokenizer }, { fromFile }] = await Promise.all([import('music-metadata'), import('strtok3')]);
  const file = await fromFile(path);
  // The parser can't be told to stop, and what only looks like sound keeps it busy for minutes: its next read fails.
  over.addEventListener('abort', () => void file.close());
  try {
    over.throwIfAborted();
    const { format } = await parseFromTokenizer(file, { duration: true, skipCovers: true });
    const ms = Math.round((format.duration ?? 0) * 1000);
    return Number.isSafeInteger(ms) ? ms : undefined;
  } catch {
    // It throws on what has no end yet, such as the recordings of browsers.
    return undefined;
  } finally {
    await file.close();
  }
}

/** What `work` gives, or undefined once the time is over, which it is told. */
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
