import { Scope } from './scope.ts';

/** What the computation of a value read: keys, or all keys with a prefix. */
export interface ComputedRead {
  readonly partition: string;
  readonly key: string;
  readonly isPrefix: boolean;
}

interface CachedValue {
  readonly reads: readonly ComputedRead[];
  readonly partitions: readonly string[];
  /** Versions of the partitions when the computation began. */
  readonly versions: readonly number[];
  readonly value: Promise<unknown>;
  bytes: number;
}

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Caches values computed from partitions; a value is valid while the versions of its partitions are unchanged. It knows
 * what each computation read, and so finds commits that leave a value valid that they change.
 */
export class MemoryValueCache {
  readonly #versionOf: (partition: string) => number;
  /** The reads of the computation that the current code belongs to. */
  readonly #computing = new Scope<ComputedRead[]>();
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
      this.#computing.get()?.push(...known.reads);
      return known.value as Promise<T>;
    }
    const outer = this.#computing.get();
    const reads: ComputedRead[] = [];
    const value = this.#computing.run(reads, compute).finally(() => outer?.push(...reads));
    const cached: CachedValue = { reads, partitions, versions, value, bytes: 0 };
    this.#add(key, cached);
    cached.value.then(
      (value) => this.#computed(key, cached, value),
      () => this.#values.get(key) === cached && this.#remove(key, cached),
    );
    return cached.value as Promise<T>;
  }

  /** Records a read, for the value whose computation does it, if any. */
  recordRead(partition: string, key: string, isPrefix: boolean): void {
    this.#computing.get()?.push({ partition, key, isPrefix });
  }

  /**
   * Throws if a commit leaves a cached value valid that it may have changed.
   *
   * @param written the records whose values the commit has changed
   */
  requireInvalidated(written: readonly { readonly partition: string; readonly key: string }[]): void {
    for (const [name, { partitions, versions, reads }] of this.#values) {
      if (!versions.every((version, i) => version === this.#versionOf(partitions[i] as string))) continue;
      const shown = written.find(({ partition, key }) =>
        reads.some(
          (read) => read.partition === partition && (read.isPrefix ? key.startsWith(read.key) : key === read.key),
        ),
      );
      if (shown !== undefined)
        throw new Error(
          `the cached value "${name}" shows "${shown.key}" of ${shown.partition}, which was changed without a write to ${partitions.join(' or ')}`,
        );
    }
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
