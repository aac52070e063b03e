import type { MediaFile } from '../../ports/media.ts';

const WINDOW_BYTES = 256 * 1024;

/**
 * A file that is read at arbitrary offsets through a buffer: reads that are close together cost one read of the file.
 */
export class FileWindow {
  readonly size: number;
  readonly #file: Pick<MediaFile, 'read'>;
  #buffer: Buffer;
  #start = 0;

  /** @param file `head`, the first bytes of it, needs no read */
  constructor(file: Pick<MediaFile, 'size' | 'read'> & Partial<Pick<MediaFile, 'head'>>) {
    this.#file = file;
    this.#buffer = file.head ?? Buffer.alloc(0);
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

  /**
   * As `at`, but synchronous; null if they are not in the buffer, which may end with the file. For loops over small
   * items, where a promise for each costs too much.
   */
  peek(offset: number, min: number): Buffer | null {
    const end = this.#start + this.#buffer.length;
    const isInside = offset >= this.#start && offset <= end && (offset + min <= end || end >= this.size);
    return isInside ? this.#buffer.subarray(offset - this.#start) : null;
  }
}
