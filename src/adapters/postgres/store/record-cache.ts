import type { VersionedValue } from './versioned-value.ts';

/** Records that are kept: these many, and up to as many that were used before them. */
const GENERATION = 8_192;
/** Longer values, in characters, are not kept. */
const LONGEST_KEPT = 4_096;
/** Milliseconds for which a record is read anew each time after it was found to be stale. */
const HOT_MS = 2_000;

/** The name of a record, by which the cache and commits find it; partitions and keys have no spaces. */
export function recordName(partition: string, key: string): string {
  return `${partition} ${key}`;
}

/**
 * Records as this process has last seen them, which may be stale. The first run of a transaction reads from here, and
 * its commit, or a look at the versions, tells whether everything that it has read was current at that time. As versions
 * do not repeat, it was current then since it was put here, and so when it was read.
 */
export class RecordCache {
  readonly #records = new Generations<VersionedValue | null>();
  /** When a record that other processes keep changing may be used again. */
  readonly #hot = new Generations<number>();

  /** Returns a record, null if there was none; undefined if it must be read. */
  get(name: string): VersionedValue | null | undefined {
    return this.#records.get(name);
  }

  /** Keeps what was read or committed: null for no record. */
  set(name: string, record: VersionedValue | null): void {
    const hotUntil = this.#hot.isEmpty ? undefined : this.#hot.get(name);
    const isHot = hotUntil !== undefined && performance.now() < hotUntil;
    if (isHot || (record !== null && record.value.length > LONGEST_KEPT)) this.#records.delete(name);
    else this.#records.set(name, record);
  }

  /** Forgets a record that was stale, and does not keep it for a while. */
  markStale(name: string): void {
    this.#records.delete(name);
    this.#hot.set(name, performance.now() + HOT_MS);
  }
}

/**
 * Values by the names of records, of which those are forgotten that were not used for longest, many at a time. The order
 * of a single map would have to be changed at each use, which takes as long as all else that is done here.
 */
class Generations<V> {
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0;
  }

  get(name: string): V | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) this.set(name, old);
    return old;
  }

  set(name: string, value: V): void {
    this.#young.set(name, value);
    if (this.#young.size < GENERATION) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(name: string): void {
    this.#young.delete(name);
    this.#old.delete(name);
  }
}
