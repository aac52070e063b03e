/** Longer values, in characters, are not kept. */
const LONGEST_KEPT = 4_096;

/**
 * Caches values of the base table, for keys that the memtable does not have. Only a checkpoint changes the base table,
 * and only with values that the memtable has until then: so a value is never stale as long as its key is deleted here
 * when the memtable drops it.
 */
export class TableCache {
  readonly #partitions = new Map<string, Map<string, string | undefined>>();
  readonly #capacity: number;
  #size = 0;

  /** @param capacity maximum number of values that are kept */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns the cached value, or the result of `read`. */
  get(partition: string, key: string, read: () => string | undefined): string | undefined {
    let values = this.#partitions.get(partition);
    const known = values?.get(key);
    if (known !== undefined || values?.has(key) === true) return known;
    const value = read();
    if (value !== undefined && value.length > LONGEST_KEPT) return value;
    if (this.#size >= this.#capacity) this.#dropOldestPartition();
    values = this.#partitions.get(partition);
    if (values === undefined) this.#partitions.set(partition, (values = new Map<string, string | undefined>()));
    values.set(key, value);
    this.#size++;
    return value;
  }

  /** Deletes keys from the cache. */
  delete(partition: string, keys: readonly string[]): void {
    const values = this.#partitions.get(partition);
    if (values === undefined) return;
    for (const key of keys) if (values.delete(key)) this.#size--;
    if (values.size === 0) this.#partitions.delete(partition);
  }

  /** Empties the cache. */
  clear(): void {
    this.#partitions.clear();
    this.#size = 0;
  }

  #dropOldestPartition(): void {
    for (const [partition, values] of this.#partitions) {
      this.#partitions.delete(partition);
      this.#size -= values.size;
      return;
    }
  }
}
