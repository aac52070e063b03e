/** Values kept, at most; and the longest text worth keeping. */
const CAPACITY = 50_000;
const LONGEST = 4_096;

/**
 * Values that were read from the tree. Only a fold changes the tree, and it writes what went through the overlay first:
 * forgetting a key when the overlay takes it is enough to never give an old value.
 */
export class TableCache {
  readonly #partitions = new Map<string, Map<string, string | undefined>>();
  #size = 0;

  /** The value, from memory or by `read`. */
  get(partition: string, key: string, read: () => string | undefined): string | undefined {
    let values = this.#partitions.get(partition);
    const known = values?.get(key);
    if (known !== undefined || values?.has(key) === true) return known;
    const value = read();
    if (value !== undefined && value.length > LONGEST) return value;
    if (this.#size >= CAPACITY) this.#dropOldest();
    values = this.#partitions.get(partition);
    if (values === undefined) this.#partitions.set(partition, (values = new Map<string, string | undefined>()));
    values.set(key, value);
    this.#size++;
    return value;
  }

  forget(partition: string, keys: readonly string[]): void {
    const values = this.#partitions.get(partition);
    if (values === undefined) return;
    for (const key of keys) if (values.delete(key)) this.#size--;
    if (values.size === 0) this.#partitions.delete(partition);
  }

  clear(): void {
    this.#partitions.clear();
    this.#size = 0;
  }

  #dropOldest(): void {
    for (const [partition, values] of this.#partitions) {
      this.#partitions.delete(partition);
      this.#size -= values.size;
      return;
    }
  }
}
