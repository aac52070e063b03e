interface CachedValue {
  readonly partitions: readonly string[];
  value: Promise<unknown>;
  bytes: number;
}

const NOT_STARTED = Promise.resolve();

/**
 * Caches values that were computed from records, until a partition that they were computed from changes. Bounded by an
 * estimate of their bytes; the least recently used values are evicted first.
 */
export class ValueCache {
  readonly #capacity: number;
  readonly #values = new Map<string, CachedValue>();
  readonly #keysByPartition = new Map<string, Set<string>>();
  #bytes = 0;

  /** @param capacity maximum number of bytes, by estimate */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /**
   * Returns the cached value of `key`, or computes it. Concurrent calls share one computation; one that rejects is not
   * kept.
   */
  get<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    const known = this.#values.get(key);
    if (known !== undefined) {
      // The order of use matters only when an eviction is near.
      if (this.#bytes > this.#capacity / 2) this.#touch(key, known);
      return known.value as Promise<T>;
    }
    const cached: CachedValue = { partitions, value: NOT_STARTED, bytes: 0 };
    // Added before the computation, whose first read may already find a change of these partitions and invalidate it.
    this.#add(key, cached);
    const value = compute();
    cached.value = value;
    void value.then(
      (result) => this.#computed(key, cached, result),
      () => this.#values.get(key) === cached && this.#remove(key, cached),
    );
    return value;
  }

  /** Drops the values that were computed, or are being computed, from a partition. */
  invalidate(partition: string): void {
    const keys = this.#keysByPartition.get(partition);
    if (keys === undefined) return;
    for (const key of [...keys]) {
      const cached = this.#values.get(key);
      if (cached !== undefined) this.#remove(key, cached);
    }
  }

  /** Drops all values. */
  clear(): void {
    this.#values.clear();
    this.#keysByPartition.clear();
    this.#bytes = 0;
  }

  #touch(key: string, cached: CachedValue): void {
    this.#values.delete(key);
    this.#values.set(key, cached);
  }

  #add(key: string, cached: CachedValue): void {
    this.#values.set(key, cached);
    for (const partition of cached.partitions) {
      let keys = this.#keysByPartition.get(partition);
      if (keys === undefined) this.#keysByPartition.set(partition, (keys = new Set()));
      keys.add(key);
    }
  }

  #remove(key: string, cached: CachedValue): void {
    this.#values.delete(key);
    this.#bytes -= cached.bytes;
    for (const partition of cached.partitions) {
      const keys = this.#keysByPartition.get(partition);
      keys?.delete(key);
      if (keys?.size === 0) this.#keysByPartition.delete(partition);
    }
  }

  #computed(key: string, cached: CachedValue, result: unknown): void {
    if (this.#values.get(key) !== cached) return;
    cached.bytes = key.length + estimateBytes(result);
    this.#bytes += cached.bytes;
    for (const [oldestKey, oldest] of this.#values) {
      if (this.#bytes <= this.#capacity) break;
      this.#remove(oldestKey, oldest);
    }
  }
}

/**
 * Large values are texts or bytes, by themselves or as the `text` of a page or view; all others are settings, which are
 * small.
 */
function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return 64 + value.length;
  if (value instanceof Uint8Array) return 64 + value.byteLength;
  if (typeof value === 'object' && value !== null && 'text' in value) return 512 + estimateBytes(value.text);
  return 1024;
}
