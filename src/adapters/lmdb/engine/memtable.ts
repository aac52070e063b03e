import type { Entry, RangeOptions } from '../../../ports/store.ts';
import { type EncodedPartition, type EncodedText, textOf } from './batch.ts';

/**
 * The changes of the log that are not in the base table yet, in memory: partition -> key -> newest value, with the
 * position of the commit that wrote it. A commit also validates its reads here: was this key written after that
 * position?
 */
export class Memtable {
  readonly #partitions = new Map<string, MemtablePartition>();

  /** Applies the writes to one partition that were committed at `position`. */
  apply({ partition, keys, encodedTexts }: EncodedPartition, position: number): void {
    let current = this.#partitions.get(partition);
    if (current === undefined) this.#partitions.set(partition, (current = new MemtablePartition()));
    for (let i = 0; i < keys.length; i++) {
      const encoded = encodedTexts[i] as EncodedText;
      encoded.position = position;
      current.set(keys[i] as string, encoded);
    }
  }

  /** The encoded text of a key; undefined if the base table has its value. */
  get(partition: string, key: string): EncodedText | undefined {
    return this.#partitions.get(partition)?.get(key);
  }

  /** The changes of a partition; undefined if there are none. */
  partition(partition: string): MemtablePartition | undefined {
    return this.#partitions.get(partition);
  }

  /** The names of the partitions with changes, in no particular order. */
  partitions(): Iterable<string> {
    return this.#partitions.keys();
  }

  /** Every encoded text that was committed after `from` and up to `to`, in the order of the base table. */
  *between(from: number, to: number): Iterable<[partition: string, key: string, encoded: EncodedText]> {
    for (const partition of [...this.#partitions.keys()].sort(byteOrder)) {
      const changed = this.#partitions.get(partition) as MemtablePartition;
      for (const key of changed.keysBetween(from, to).sort(byteOrder))
        yield [partition, key, changed.get(key) as EncodedText];
    }
  }

  /**
   * Drops what was committed at or before `position`: the base table has it.
   *
   * @param onDrop called with the keys of each partition that were dropped
   */
  drop(position: number, onDrop: (partition: string, keys: readonly string[]) => void): void {
    for (const [partition, changed] of this.#partitions) {
      const keys = changed.drop(position);
      if (keys.length > 0) onDrop(partition, keys);
      if (changed.size === 0) this.#partitions.delete(partition);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#partitions.clear();
  }
}

/** One key is inserted into a sorted list in less time than so many others are compared with it. */
const FEW = 16;

/** The encoded texts of one partition by key. The keys are sorted when their order is first needed. */
export class MemtablePartition {
  readonly #encodedTexts = new Map<string, EncodedText>();
  /** The keys in byte order, without those of `#unsorted`; undefined while no order was needed. */
  #ordered: string[] | undefined;
  /** Keys that were added since the last sorting, and do not belong at the end. */
  #unsorted: string[] = [];

  get size(): number {
    return this.#encodedTexts.size;
  }

  get(key: string): EncodedText | undefined {
    return this.#encodedTexts.get(key);
  }

  set(key: string, encoded: EncodedText): void {
    const { size } = this.#encodedTexts;
    this.#encodedTexts.set(key, encoded);
    const ordered = this.#ordered;
    if (ordered === undefined || this.#encodedTexts.size === size) return;
    const last = ordered.at(-1);
    // Most new keys are the largest, because they begin with a time.
    if (last === undefined || key > last) ordered.push(key);
    else this.#unsorted.push(key);
  }

  /** Drops the encoded texts that were committed at or before `position`, and returns their keys. */
  drop(position: number): string[] {
    const dropped = this.keysBetween(Number.NEGATIVE_INFINITY, position);
    if (dropped.length === 0) return dropped;
    if (dropped.length === this.#encodedTexts.size) this.#encodedTexts.clear();
    else for (const key of dropped) this.#encodedTexts.delete(key);
    this.#ordered = undefined;
    this.#unsorted = [];
    return dropped;
  }

  /** The keys of the encoded texts that were committed after `from` and up to `to`, in no particular order. */
  keysBetween(from: number, to: number): string[] {
    const keys: string[] = [];
    for (const [key, { position }] of this.#encodedTexts) if (position > from && position <= to) keys.push(key);
    return keys;
  }

  /** The keys in byte order. */
  ordered(): readonly string[] {
    const unsorted = this.#unsorted;
    if (this.#ordered === undefined) this.#ordered = [...this.#encodedTexts.keys()].sort(byteOrder);
    else if (unsorted.length * FEW < this.#ordered.length)
      for (const key of unsorted) this.#ordered.splice(positionOf(this.#ordered, key), 0, key);
    else if (unsorted.length > 0) this.#ordered = mergeSorted(this.#ordered, unsorted.sort(byteOrder));
    this.#unsorted = [];
    return this.#ordered;
  }
}

/** Merges two lists in byte order that have no key in common. */
function mergeSorted(a: readonly string[], b: readonly string[]): string[] {
  const merged: string[] = [];
  let next = 0;
  for (const key of a) {
    for (let other = b[next]; other !== undefined && other < key; other = b[++next]) merged.push(other);
    merged.push(key);
  }
  for (; next < b.length; next++) merged.push(b[next] as string);
  return merged;
}

/** Compares two ASCII keys; the order is that of the base table. */
export function byteOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Merges the entries of a partition in the base table with its changes in the memtable, which take precedence.
 *
 * @param table the entries of the base table within the range and in its direction; read only as far as needed
 */
export function mergeRange(
  table: Iterable<Entry>,
  changed: MemtablePartition | undefined,
  options: RangeOptions,
): Entry[] {
  const { reverse = false, limit = Number.POSITIVE_INFINITY } = options;
  const entries: Entry[] = [];
  if (limit <= 0) return entries;
  const keys = changed?.ordered() ?? [];
  const { first, end } = positionsOf(keys, options);
  const step = reverse ? -1 : 1;
  let next = reverse ? end - 1 : first;
  const nextKey = (): string | undefined => (next >= first && next < end ? keys[next] : undefined);
  const takeEncoded = (key: string): void => {
    next += step;
    const value = textOf(changed?.get(key) as EncodedText);
    if (value !== undefined) entries.push({ key, value });
  };
  for (const entry of table) {
    let key = nextKey();
    for (
      ;
      key !== undefined && entries.length < limit && (reverse ? key > entry.key : key < entry.key);
      key = nextKey()
    )
      takeEncoded(key);
    if (entries.length >= limit) return entries;
    if (key === entry.key) takeEncoded(key);
    else entries.push(entry);
    if (entries.length >= limit) return entries;
  }
  for (let key = nextKey(); key !== undefined && entries.length < limit; key = nextKey()) takeEncoded(key);
  return entries;
}

/** The keys in the range: those at the positions from `first` to before `end`. */
function positionsOf(
  ordered: readonly string[],
  { prefix = '', after, reverse }: RangeOptions,
): { first: number; end: number } {
  let first = positionOf(ordered, prefix);
  // Characters of keys are below 0x7f, so this is past every key with the prefix.
  let end = positionOf(ordered, `${prefix}\u007f`);
  if (after !== undefined && reverse === true) end = Math.min(end, positionOf(ordered, after));
  // Past `after` itself: no character of a key is below this one.
  else if (after !== undefined) first = Math.max(first, positionOf(ordered, `${after}\u0000`));
  return { first, end };
}

/** The position of the first key that is not below `key`: a binary search. */
function positionOf(ordered: readonly string[], key: string): number {
  let low = 0;
  for (let high = ordered.length; low < high;) {
    const middle = (low + high) >>> 1;
    if ((ordered[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
