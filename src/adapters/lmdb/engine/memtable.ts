import type { Entry, RangeOptions } from '../../../ports/store.ts';
import { type EncodedPartition, type Slot, textOf } from './batch.ts';

/**
 * The changes of the log that are not in the base table yet, in memory: partition -> key -> newest value, with the position
 * of the commit that wrote it. A commit also validates its reads here: was this key written after that position?
 */
export class Memtable {
  readonly #partitions = new Map<string, PartitionSlots>();

  /** Applies the writes to one partition that were committed at `position`. */
  apply({ partition, keys, slots }: EncodedPartition, position: number): void {
    let current = this.#partitions.get(partition);
    if (current === undefined) this.#partitions.set(partition, (current = new PartitionSlots()));
    for (let i = 0; i < keys.length; i++) {
      const slot = slots[i] as Slot;
      slot.position = position;
      current.set(keys[i] as string, slot);
    }
  }

  /** The slot of a key; undefined if the base table has its value. */
  get(partition: string, key: string): Slot | undefined {
    return this.#partitions.get(partition)?.get(key);
  }

  /** The slots of a partition; undefined if there are none. */
  slots(partition: string): PartitionSlots | undefined {
    return this.#partitions.get(partition);
  }

  /** The names of the partitions that have slots, in no particular order. */
  partitions(): Iterable<string> {
    return this.#partitions.keys();
  }

  /** Every slot that was committed after `from` and up to `to`, in the order of the base table. */
  *between(from: number, to: number): Iterable<[partition: string, key: string, slot: Slot]> {
    for (const partition of [...this.#partitions.keys()].sort(byteOrder)) {
      const slots = this.#partitions.get(partition) as PartitionSlots;
      for (const key of slots.keysBetween(from, to).sort(byteOrder)) yield [partition, key, slots.get(key) as Slot];
    }
  }

  /**
   * Drops what was committed at or before `position`: the base table has it.
   *
   * @param onDrop called with the keys of each partition that were dropped
   */
  drop(position: number, onDrop: (partition: string, keys: readonly string[]) => void): void {
    for (const [partition, slots] of this.#partitions) {
      const keys = slots.drop(position);
      if (keys.length > 0) onDrop(partition, keys);
      if (slots.size === 0) this.#partitions.delete(partition);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#partitions.clear();
  }
}

/** One key is inserted into a sorted list in less time than so many others are compared with it. */
const FEW = 16;

/** The slots of one partition by key. The keys are sorted when their order is first needed. */
export class PartitionSlots {
  readonly #slots = new Map<string, Slot>();
  /** The keys in byte order, without those of `#unsorted`; undefined while no order was needed. */
  #ordered: string[] | undefined;
  /** Keys that were added since the last sorting, and do not belong at the end. */
  #unsorted: string[] = [];

  get size(): number {
    return this.#slots.size;
  }

  get(key: string): Slot | undefined {
    return this.#slots.get(key);
  }

  set(key: string, slot: Slot): void {
    const { size } = this.#slots;
    this.#slots.set(key, slot);
    const ordered = this.#ordered;
    if (ordered === undefined || this.#slots.size === size) return;
    const last = ordered.at(-1);
    // Most new keys are the largest, because they begin with a time.
    if (last === undefined || key > last) ordered.push(key);
    else this.#unsorted.push(key);
  }

  /** Drops the slots that were committed at or before `position`, and returns their keys. */
  drop(position: number): string[] {
    const dropped = this.keysBetween(Number.NEGATIVE_INFINITY, position);
    if (dropped.length === 0) return dropped;
    if (dropped.length === this.#slots.size) this.#slots.clear();
    else for (const key of dropped) this.#slots.delete(key);
    this.#ordered = undefined;
    this.#unsorted = [];
    return dropped;
  }

  /** The keys of the slots that were committed after `from` and up to `to`, in no particular order. */
  keysBetween(from: number, to: number): string[] {
    const keys: string[] = [];
    for (const [key, { position }] of this.#slots) if (position > from && position <= to) keys.push(key);
    return keys;
  }

  /** The keys in byte order. */
  ordered(): readonly string[] {
    const unsorted = this.#unsorted;
    if (this.#ordered === undefined) this.#ordered = [...this.#slots.keys()].sort(byteOrder);
    else if (unsorted.length * FEW < this.#ordered.length) for (const key of unsorted) this.#ordered.splice(positionOf(this.#ordered, key), 0, key);
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
 * Merges the entries of a partition in the base table with its slots, which take precedence.
 *
 * @param table the entries of the base table within the range and in its direction; read only as far as needed
 */
export function mergeRange(table: Iterable<Entry>, slots: PartitionSlots | undefined, options: RangeOptions): Entry[] {
  const { reverse = false, limit = Number.POSITIVE_INFINITY } = options;
  const entries: Entry[] = [];
  if (limit <= 0) return entries;
  const keys = slots?.ordered() ?? [];
  const { first, end } = positionsOf(keys, options);
  const step = reverse ? -1 : 1;
  let next = reverse ? end - 1 : first;
  const nextKey = (): string | undefined => (next >= first && next < end ? keys[next] : undefined);
  const takeSlot = (key: string): void => {
    next += step;
    const value = textOf(slots?.get(key) as Slot);
    if (value !== undefined) entries.push({ key, value });
  };
  for (const entry of table) {
    let key = nextKey();
    for (; key !== undefined && entries.length < limit && (reverse ? key > entry.key : key < entry.key); key = nextKey()) takeSlot(key);
    if (entries.length >= limit) return entries;
    if (key === entry.key) takeSlot(key);
    else entries.push(entry);
    if (entries.length >= limit) return entries;
  }
  for (let key = nextKey(); key !== undefined && entries.length < limit; key = nextKey()) takeSlot(key);
  return entries;
}

/** The keys in the range: those at the positions from `first` to before `end`. */
function positionsOf(ordered: readonly string[], { prefix = '', after, reverse }: RangeOptions): { first: number; end: number } {
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
  for (let high = ordered.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((ordered[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
