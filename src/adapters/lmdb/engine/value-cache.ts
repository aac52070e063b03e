interface Kept {
  readonly partitions: readonly string[];
  value: Promise<unknown>;
  /** What `value` resolved with, once it has. */
  result: unknown;
  bytes: number;
}

const NOTHING = Promise.resolve();

/**
 * Values computed from records, kept until a partition they were read from changes.
 * Bounded by an estimate of bytes; the least recently used go first.
 */
export class ValueCache {
  readonly #capacity: number;
  readonly #kept = new Map<string, Kept>();
  readonly #byPartition = new Map<string, Set<string>>();
  #bytes = 0;

  /** @param capacity bytes of values to keep at most */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    const known = this.#kept.get(key);
    if (known !== undefined) {
      // Order only matters once something will have to go.
      if (this.#bytes > this.#capacity / 2) this.#touch(key, known);
      return known.value as Promise<T>;
    }
    const kept: Kept = { partitions, value: NOTHING, result: undefined, bytes: 0 };
    // Before it is computed: the first read may find a change of what it is computed from.
    this.#add(key, kept);
    const value = compute();
    kept.value = value;
    void value.then(
      (result) => this.#weigh(key, kept, result),
      () => this.#kept.get(key) === kept && this.#remove(key, kept),
    );
    return value;
  }

  /** What `get` gives, where it has been computed. */
  recall<T>(key: string): T | undefined {
    return this.#kept.get(key)?.result as T | undefined;
  }

  /** Forgets what was computed, or is being computed, from a partition. */
  invalidate(partition: string): void {
    const keys = this.#byPartition.get(partition);
    if (keys === undefined) return;
    for (const key of [...keys]) {
      const kept = this.#kept.get(key);
      if (kept !== undefined) this.#remove(key, kept);
    }
  }

  clear(): void {
    this.#kept.clear();
    this.#byPartition.clear();
    this.#bytes = 0;
  }

  #touch(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#kept.set(key, kept);
  }

  #add(key: string, kept: Kept): void {
    this.#kept.set(key, kept);
    for (const partition of kept.partitions) {
      let keys = this.#byPartition.get(partition);
      if (keys === undefined) this.#byPartition.set(partition, (keys = new Set()));
      keys.add(key);
    }
  }

  #remove(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
    for (const partition of kept.partitions) {
      const keys = this.#byPartition.get(partition);
      keys?.delete(key);
      if (keys?.size === 0) this.#byPartition.delete(partition);
    }
  }

  #weigh(key: string, kept: Kept, result: unknown): void {
    if (this.#kept.get(key) !== kept) return;
    kept.result = result;
    kept.bytes = key.length + weightOf(result);
    this.#bytes += kept.bytes;
    for (const [oldestKey, oldest] of this.#kept) {
      if (this.#bytes <= this.#capacity) break;
      this.#remove(oldestKey, oldest);
    }
  }
}

/** A guess in bytes: what is large is text, by itself or as the `text` of a page or view; the rest is settings, small. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return 64 + value.length;
  if (value instanceof Uint8Array) return 64 + value.byteLength;
  if (typeof value === 'object' && value !== null && 'text' in value) return 512 + weightOf(value.text);
  return 1024;
}
