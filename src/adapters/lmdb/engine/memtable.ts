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

  /** Every slot, in the order of the base table. */
  *all(): Iterable<[partition: string, key: string, slot: Slot]> {
    for (const partition of [...this.#partitions.keys()].sort(byteOrder)) {
      const slots = this.#partitions.get(partition);
      for (const key of slots?.ordered() ?? []) yield [partition, key, slots?.get(key) as Slot];
    }
  }

  /** Drops what was committed at or before `position`: the base table has it. */
  drop(position: number): void {
    for (const [partition, slots] of this.#partitions) {
      slots.drop(position);
      if (slots.size === 0) this.#partitions.delete(partition);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#partitions.clear();
  }
}

/** The slots of one partition by key. The keys are sorted when their order is first needed. */
export class PartitionSlots {
  readonly #slots = new Map<string, Slot>();
  #ordered: string[] | undefined;

  get size(): number {
    return this.#slots.size;
  }

  get(key: string): Slot | undefined {
    return this.#slots.get(key);
  }

  set(key: string, slot: Slot): void {
    const ordered = this.#ordered;
    if (ordered !== undefined && !this.#slots.has(key)) {
      const last = ordered.at(-1);
      // Most new keys are the largest, because they begin with a time. After any other the keys are sorted anew when needed.
      if (last === undefined || key > last) ordered.push(key);
      else this.#ordered = undefined;
    }
    this.#slots.set(key, slot);
  }

  /** Drops the slots that were committed at or before `position`. */
  drop(position: number): void {
    for (const [key, slot] of this.#slots) {
      if (slot.position <= position) this.#slots.delete(key);
    }
    this.#ordered = undefined;
  }

  /** The keys in byte order. */
  ordered(): readonly string[] {
    return (this.#ordered ??= [...this.#slots.keys()].sort(byteOrder));
  }
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
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const entries: Entry[] = [];
  const direction = options.reverse === true ? -1 : 1;
  const keys = slots === undefined ? [] : keysInRange(slots.ordered(), options);
  let next = 0;
  const takeSlot = (): void => {
    const key = keys[next++] as string;
    const value = textOf(slots?.get(key) as Slot);
    if (value !== undefined) entries.push({ key, value });
  };
  if (limit > 0) {
    for (const entry of table) {
      while (next < keys.length && entries.length < limit && byteOrder(keys[next] as string, entry.key) * direction < 0) takeSlot();
      if (entries.length >= limit) break;
      if (keys[next] === entry.key) takeSlot();
      else entries.push(entry);
      if (entries.length >= limit) break;
    }
  }
  while (next < keys.length && entries.length < limit) takeSlot();
  return entries;
}

function keysInRange(ordered: readonly string[], { prefix = '', after, reverse }: RangeOptions): string[] {
  const keys = ordered.filter((key) => key.startsWith(prefix));
  if (reverse === true) keys.reverse();
  if (after === undefined) return keys;
  return keys.filter((key) => (reverse === true ? key < after : key > after));
}
