import { type FileHandle, open } from 'node:fs/promises';

const WINDOW_BYTES = 256 * 1024;

/** A file that is read at arbitrary offsets through a buffer: reads that are close together cost one system call. */
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

  /** Opens the file at `path`, runs `work` on it, and closes it. */
  static async use<T>(path: string, work: (file: FileWindow) => Promise<T>): Promise<T> {
    const handle = await open(path, 'r');
    try {
      const { size } = await handle.stat();
      return await work(new FileWindow(handle, size));
    } finally {
      await handle.close();
    }
  }

  /** Returns the bytes from `offset` on, at least `min` of them unless the file ends before. Valid until the next call. */
  async at(offset: number, min: number): Promise<Buffer> {
    const buffered = this.peek(offset, min);
    if (buffered !== null) return buffered;
    const { bytesRead } = await this.#handle.read(this.#buffer, 0, WINDOW_BYTES, offset);
    this.#start = offset;
    this.#filled = bytesRead;
    return this.#buffer.subarray(0, bytesRead);
  }

  /** As `at`, but synchronous; null if the bytes are not in the buffer. For loops over small items, where a promise for each costs too much. */
  peek(offset: number, min: number): Buffer | null {
    const isInside = offset >= this.#start && offset + min <= this.#start + this.#filled;
    return isInside ? this.#buffer.subarray(offset - this.#start, this.#filled) : null;
  }
}
