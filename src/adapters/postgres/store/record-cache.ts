import { BoundedMap } from '../../../lib/bounded-map.ts';
import type { VersionedValue } from './versioned-value.ts';

const CAPACITY = 16_384;
/** Longer values, in characters, are not kept. */
const LONGEST_KEPT = 4_096;
/** Milliseconds for which a record is read anew each time after it was found to be stale. */
const HOT_MS = 2_000;

/**
 * Records as this process has last seen them, which may be stale. The first run of a transaction reads from here, and
 * its commit, or a look at the versions, tells whether everything that it has read was current at that time. As versions
 * do not repeat, it was current then since it was put here, and so when it was read.
 */
export class RecordCache {
  readonly #records = new BoundedMap<string, VersionedValue | null>(CAPACITY);
  /** When a record that other processes keep changing may be used again. */
  readonly #hot = new BoundedMap<string, number>(CAPACITY);

  /** Returns a record, null if there was none; undefined if it must be read. */
  get(partition: string, key: string): VersionedValue | null | undefined {
    return this.#records.get(nameOf(partition, key));
  }

  /** Keeps what was read or committed: null for no record. */
  set(partition: string, key: string, record: VersionedValue | null): void {
    const name = nameOf(partition, key);
    const hotUntil = this.#hot.get(name);
    const isHot = hotUntil !== undefined && performance.now() < hotUntil;
    if (isHot || (record !== null && record.value.length > LONGEST_KEPT)) this.#records.delete(name);
    else this.#records.set(name, record);
  }

  /** Forgets a record that was stale, and does not keep it for a while. */
  markStale(partition: string, key: string): void {
    const name = nameOf(partition, key);
    this.#records.delete(name);
    this.#hot.set(name, performance.now() + HOT_MS);
  }
}

/** Names have no spaces. */
function nameOf(partition: string, key: string): string {
  return `${partition} ${key}`;
}
