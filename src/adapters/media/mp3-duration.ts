import { setImmediate as nextIteration } from 'node:timers/promises';
import { parseFromTokenizer } from 'music-metadata';
import { AbstractTokenizer, EndOfStreamError, type IRandomAccessFileInfo, type IReadChunkOptions } from 'strtok3/core';
import type { FileWindow } from './file-window.ts';

/** How long the parser may run without a break for other work of the process, in milliseconds. */
const RUN_MS = 5;

/**
 * Returns the duration of an MP3 file, which has frames of many kinds, in milliseconds; undefined if it cannot be parsed.
 *
 * @param mayContinue called for each read; false makes it fail, because the parser has no way to stop it
 */
export async function mp3Duration(file: FileWindow, mayContinue: () => boolean): Promise<number | undefined> {
  const { format } = await parseFromTokenizer(new WindowTokenizer(file, mayContinue), { duration: true, skipCovers: true });
  const ms = Math.round((format.duration ?? 0) * 1000);
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
}

/** Gives the parser the bytes of a file. */
class WindowTokenizer extends AbstractTokenizer {
  readonly fileInfo: IRandomAccessFileInfo;
  readonly #file: FileWindow;
  readonly #mayContinue: () => boolean;
  #runUntil = performance.now() + RUN_MS;

  constructor(file: FileWindow, mayContinue: () => boolean) {
    super();
    // With the type, the parser searches the first frame: by content it knows only files that begin with one.
    this.fileInfo = { size: file.size, mimeType: 'audio/mpeg' };
    this.#file = file;
    this.#mayContinue = mayContinue;
  }

  async readBuffer(target: Uint8Array, options?: IReadChunkOptions): Promise<number> {
    const { position } = this.normalizeOptions(target, options);
    const read = await this.peekBuffer(target, options);
    this.position = position + read;
    return read;
  }

  async peekBuffer(target: Uint8Array, options?: IReadChunkOptions): Promise<number> {
    const { position, length, mayBeLess } = this.normalizeOptions(target, options);
    let read = 0;
    while (read < length) {
      // Reads from the window need no time, so without this nothing else would run, not even the timer of the time limit.
      if (performance.now() > this.#runUntil) {
        await nextIteration();
        this.#runUntil = performance.now() + RUN_MS;
      }
      if (!this.#mayContinue()) throw new Error('The file takes too long to parse');
      const bytes = await this.#file.at(position + read, 1);
      if (bytes.length === 0) break;
      read += bytes.copy(target, read, 0, Math.min(bytes.length, length - read));
    }
    if (!mayBeLess && read < length) throw new EndOfStreamError();
    return read;
  }

  setPosition(position: number): void {
    this.validateLength(position, 'position');
    this.position = position;
  }

  supportsRandomAccess(): boolean {
    return true;
  }
}
