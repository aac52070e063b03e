import type { MediaFile } from '../../ports/media.ts';

const WINDOW_BYTES = 256 * 1024;

/** A file that is read at arbitrary offsets through a buffer: reads that are close together cost one read of the file. */
export class FileWindow {
  readonly size: number;
  readonly #file: Pick<MediaFile, 'read'>;
  #buffer: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(file: Pick<MediaFile, 'size' | 'read'>) {
    this.#file = file;
    this.size = file.size;
  }

  /** Returns the bytes from `offset` on, at least `min` of them (at most 256 KiB) unless the file ends before. */
  async at(offset: number, min: number): Promise<Buffer> {
    const buffered = this.peek(offset, min);
    if (buffered !== null) return buffered;
    this.#buffer = await this.#file.read(offset, WINDOW_BYTES);
    this.#start = offset;
    return this.#buffer;
  }

  /** As `at`, but synchronous; null if the bytes are not in the buffer. For loops over small items, where a promise for each costs too much. */
  peek(offset: number, min: number): Buffer | null {
    const isInside = offset >= this.#start && offset + min <= this.#start + this.#buffer.length;
    return isInside ? this.#buffer.subarray(offset - this.#start) : null;
  }
}
