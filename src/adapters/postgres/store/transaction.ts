import type { Entry, RangeOptions, Reader, RenderEvent, Transaction, UnguardedReader } from '../../../ports/store.ts';
import { type RecordCache, recordName } from './record-cache.ts';
import type { VersionedValue } from './versioned-value.ts';

/** A record that a transaction has read and that guards it. */
export interface GuardedRead {
  readonly partition: string;
  readonly key: string;
  /** Of both (`recordName`). */
  readonly name: string;
  /** Null if there was no record. */
  readonly version: string | null;
}

/** An unguarded read from the cache. */
export interface Assumption extends GuardedRead {
  /** Whether another value at the commit is as good; absent: it must have been current when it was read. */
  readonly suffices: ((current: string | undefined) => boolean) | undefined;
}

/** A buffered write: a `value` (undefined: delete), or a `change` to be evaluated at commit. */
export type Operation =
  | {
      readonly partition: string;
      readonly key: string;
      readonly value: string | undefined;
      readonly change?: undefined;
      readonly name?: undefined;
    }
  | {
      readonly partition: string;
      readonly key: string;
      readonly value?: undefined;
      readonly name: string;
      readonly change: (current: string | undefined) => string | undefined;
    };

/** An event to append to a stream; `render` is null for the end of the stream. */
export interface Emission {
  readonly stream: string;
  readonly render: RenderEvent | null;
}

/** Reads of `PostgresTransaction`. */
export interface GuardedReader extends Reader {
  getVersioned(partition: string, key: string): Promise<VersionedValue | null>;
}

/** The reads and buffered writes of one run of a transaction's work. */
export class PostgresTransaction implements Transaction {
  readonly reads: GuardedRead[] = [];
  readonly assumptions: Assumption[] = [];
  readonly operations: Operation[] = [];
  readonly emissions: Emission[] = [];
  readonly unguarded: UnguardedReader;
  /** Whether any read came from the cache. */
  isSpeculative = false;
  readonly #reader: GuardedReader;
  readonly #cache: RecordCache | null;

  /**
   * @param reader reads of the store as of now
   * @param cache records that may be stale, to read from where it has them; null: all reads are as of now
   */
  constructor(reader: GuardedReader, cache: RecordCache | null) {
    this.#reader = reader;
    this.#cache = cache;
    this.unguarded =
      cache === null
        ? reader
        : {
            get: (partition, key, suffices) => this.#getUnguarded(partition, key, suffices),
            range: (partition, options) => reader.range(partition, options),
          };
  }

  /** Whether there is anything to commit. */
  get writes(): boolean {
    return this.operations.length > 0 || this.emissions.length > 0;
  }

  async get(partition: string, key: string): Promise<string | undefined> {
    const name = recordName(partition, key);
    const cached = this.#cached(name);
    const read = cached === undefined ? await this.#reader.getVersioned(partition, key) : cached;
    this.reads.push({ partition, key, name, version: read?.version ?? null });
    return read?.value;
  }

  async #getUnguarded(partition: string, key: string, suffices: Assumption['suffices']): Promise<string | undefined> {
    const name = recordName(partition, key);
    const cached = this.#cached(name);
    if (cached === undefined) return this.#reader.get(partition, key);
    this.assumptions.push({ partition, key, name, version: cached?.version ?? null, suffices });
    return cached?.value;
  }

  #cached(name: string): VersionedValue | null | undefined {
    const cached = this.#cache?.get(name);
    if (cached !== undefined) this.isSpeculative = true;
    return cached;
  }

  range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    return this.#reader.range(partition, options);
  }

  put(partition: string, key: string, value: string): void {
    this.operations.push({ partition, key, value });
  }

  delete(partition: string, key: string): void {
    this.operations.push({ partition, key, value: undefined });
  }

  update(partition: string, key: string, change: (current: string | undefined) => string | undefined): void {
    this.operations.push({ partition, key, name: recordName(partition, key), change });
  }

  emit(stream: string, render: RenderEvent): void {
    this.emissions.push({ stream, render });
  }

  endStream(stream: string): void {
    this.emissions.push({ stream, render: null });
  }
}
