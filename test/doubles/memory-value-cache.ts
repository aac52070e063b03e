interface CachedValue {
  readonly partitions: readonly string[];
  /** Versions of the partitions when the computation began. */
  readonly versions: readonly number[];
  readonly value: Promise<unknown>;
  /** The result of `value`; undefined before it has resolved. */
  result: unknown;
  bytes: number;
}

const MAX_BYTES = 16 * 1024 * 1024;

/** Caches values computed from partitions; a value is valid while the versions of its partitions are unchanged. */
export class MemoryValueCache {
  readonly #versionOf: (partition: string) => number;
  readonly #values = new Map<string, CachedValue>();
  #bytes = 0;

  /** @param versionOf returns a number that changes with every write to the partition */
  constructor(versionOf: (partition: string) => number) {
    this.#versionOf = versionOf;
  }

  /** As `Store.cached`. */
  get<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    const versions = partitions.map(this.#versionOf);
    const known = this.#values.get(key);
    if (known !== undefined) this.#remove(key, known);
    if (known?.versions.every((version, i) => version === versions[i])) {
      this.#add(key, known);
      return known.value as Promise<T>;
    }
    const cached: CachedValue = { partitions, versions, value: compute(), result: undefined, bytes: 0 };
    this.#add(key, cached);
    cached.value.then(
      (value) => this.#computed(key, cached, value),
      () => this.#values.get(key) === cached && this.#remove(key, cached),
    );
    return cached.value as Promise<T>;
  }

  /** As `Store.peek`. */
  peek<T>(key: string): T | undefined {
    const cached = this.#values.get(key);
    return cached?.versions.every((version, i) => version === this.#versionOf(cached.partitions[i] as string)) === true
      ? (cached.result as T)
      : undefined;
  }

  #add(key: string, cached: CachedValue): void {
    this.#values.set(key, cached);
    this.#bytes += cached.bytes;
  }

  #remove(key: string, cached: CachedValue): void {
    this.#values.delete(key);
    this.#bytes -= cached.bytes;
  }

  #computed(key: string, cached: CachedValue, value: unknown): void {
    if (this.#values.get(key) !== cached) return;
    this.#remove(key, cached);
    cached.result = value;
    cached.bytes = key.length + estimateBytes(value);
    this.#add(key, cached);
    for (const [oldestKey, oldest] of this.#values) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#remove(oldestKey, oldest);
    }
  }
}

/** Texts and bytes by their size, also as the `text` of a page; other objects are settings, which are small. */
function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value === 'object' && value !== null && 'text' in value) return 64 + estimateBytes(value.text);
  return 1_024;
}
