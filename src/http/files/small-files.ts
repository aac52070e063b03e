/** The largest file that is cached. */
const MAX_FILE_BYTES = 512 * 1024;
const MAX_CACHE_BYTES = 32 * 1024 * 1024;

/**
 * A cache of the contents of small files that were requested recently. Files never change, so an entry never becomes
 * stale.
 */
export class SmallFiles {
  /** In the order of their last use. */
  readonly #files = new Map<string, Buffer>();
  #bytes = 0;

  get(key: string): Buffer | undefined {
    const file = this.#files.get(key);
    if (file === undefined) return undefined;
    this.#files.delete(key);
    this.#files.set(key, file);
    return file;
  }

  /** Whether a file of `size` bytes may be cached. */
  fits(size: number): boolean {
    return size <= MAX_FILE_BYTES;
  }

  /** Caches a file, and evicts the least recently used ones if the cache is full. */
  set(key: string, file: Buffer): void {
    if (this.#files.has(key)) return;
    this.#files.set(key, file);
    this.#bytes += file.length;
    for (const [oldest, { length }] of this.#files) {
      if (this.#bytes <= MAX_CACHE_BYTES) return;
      this.#files.delete(oldest);
      this.#bytes -= length;
    }
  }
}
