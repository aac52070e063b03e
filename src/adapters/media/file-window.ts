import { type FileHandle, open } from 'node:fs/promises';

const WINDOW_BYTES = 256 * 1024;

/** A file read here and there, through a window that is kept: reads close to each other cost one call. */
export class FileWindow {
  readonly size: number;
  readonly #handle: FileHandle;
  readonly #buffer = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  #start = 0;
  #filled = 0;

  private constructor(handle: FileHandle, size: number) {
    this.#handle = handle;
    this.size = size;
  }

  /** Runs `work` on the file at `path`. */
  static async over<T>(path: string, work: (file: FileWindow) => Promise<T>): Promise<T> {
    const handle = await open(path, 'r');
    try {
      const { size } = await handle.stat();
      return await work(new FileWindow(handle, size));
    } finally {
      await handle.close();
    }
  }

  /** The bytes from `offset` on, at least `least` of them unless the file ends before. Good until the next call. */
  async at(offset: number, least: number): Promise<Buffer> {
    const atHand = this.peek(offset, least);
    if (atHand !== null) return atHand;
    const { bytesRead } = await this.#handle.read(this.#buffer, 0, WINDOW_BYTES, offset);
    this.#start = offset;
    this.#filled = bytesRead;
    return this.#buffer.subarray(0, bytesRead);
  }

  /** As `at`, without a wait; null where that takes a read. For loops over small things: a promise for each costs too much. */
  peek(offset: number, least: number): Buffer | null {
    const isInside = offset >= this.#start && offset + least <= this.#start + this.#filled;
    return isInside ? this.#buffer.subarray(offset - this.#start, this.#filled) : null;
  }
}
