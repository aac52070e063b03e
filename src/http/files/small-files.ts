/** A file up to here is worth keeping. */
const MOST_FILE_BYTES = 512 * 1024;
const MOST_BYTES = 32 * 1024 * 1024;

/** Small files that were asked for lately, whole. They never change, so they are good as long as their record is there. */
export class SmallFiles {
  readonly #files = new Map<string, Buffer>();
  #bytes = 0;

  get(key: string): Buffer | undefined {
    const file = this.#files.get(key);
    if (file === undefined) return undefined;
    this.#files.delete(key);
    this.#files.set(key, file);
    return file;
  }

  /** Whether a file of this size may be kept. */
  fits(size: number): boolean {
    return size <= MOST_FILE_BYTES;
  }

  /** Keeps a file, and forgets those that nobody asked for the longest. */
  keep(key: string, file: Buffer): void {
    if (this.#files.has(key)) return;
    this.#files.set(key, file);
    this.#bytes += file.length;
    for (const [oldest, { length }] of this.#files) {
      if (this.#bytes <= MOST_BYTES) return;
      this.#files.delete(oldest);
      this.#bytes -= length;
    }
  }
}
