import { CollabError } from '../../src/model/errors.ts';
import { ListenerErrors, Listeners } from '../../src/lib/listeners.ts';
import type {
  Entry,
  EventListener,
  Growth,
  RangeOptions,
  Reader,
  RenderEvent,
  Store,
  StoredEvent,
  Transaction,
} from '../../src/ports/store.ts';
import { type Emission, type GuardedRead, MemoryDatabase, type Operation } from './memory-database.ts';
import { MemoryValueCache } from './memory-value-cache.ts';
import { Scope } from './scope.ts';

const ATTEMPTS = 12;
const MAX_DELAY = 4;

interface Follower {
  readonly listener: Listeners<Parameters<EventListener>>;
  /** Stream -> position of the last event delivered. */
  readonly delivered: Map<string, number>;
  /** Streams whose end was delivered, or that ended before the follower was added. */
  readonly ended: Set<string>;
}

/**
 * A store in memory, for tests. Every read and commit is delayed by a random number of event loop iterations, so that
 * races that are rare elsewhere are frequent here. Several stores over one database simulate several processes.
 */
export class MemoryStore implements Store {
  readonly #database: MemoryDatabase;
  readonly #valueCache: MemoryValueCache;
  readonly #followers = new Set<Follower>();
  #delivering = false;
  /** Set while the work of a transaction of this store runs, and in what it starts. */
  readonly #working = new Scope<true>();
  readonly #faults = new ListenerErrors();
  readonly #flushListeners = new Listeners<[growth: Growth, ms: number]>(this.#faults.report);
  readonly #stopListening: () => void;
  #closed = false;

  constructor(database: MemoryDatabase = new MemoryDatabase()) {
    this.#database = database;
    this.#valueCache = new MemoryValueCache((partition) => database.partitionVersion(partition));
    this.#stopListening = database.onCommit((changed) => {
      void randomDelay().then(() => this.#deliver());
      this.#valueCache.requireInvalidated(changed);
    });
  }

  get epoch(): string {
    return this.#database.epoch;
  }

  async get(partition: string, key: string): Promise<string | undefined> {
    this.#valueCache.recordRead(partition, key, false);
    return this.#read(() => this.#database.get(partition, key));
  }

  async range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    this.#valueCache.recordRead(partition, options.prefix ?? '', true);
    return this.#read(() => this.#database.range(partition, options));
  }

  async transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#requireNoTransaction();
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      this.#requireOpen();
      const tx = new MemoryTransaction(this.#database);
      const result = await this.#working.run(true, () => work(tx));
      if (!tx.writes) return result;
      await randomDelay();
      this.#requireOpen();
      if (this.#database.full) throw new CollabError('storage_full', 'The server’s disk is full: nothing was written');
      if (this.#database.failing)
        throw new CollabError('storage_failed', 'The server’s disk reports an I/O error: the change was not confirmed');
      const committed = this.#database.commit(tx.reads, tx.operations, tx.emissions);
      if (committed) {
        const growth = this.#growthOf(tx.emissions);
        await randomDelay();
        this.#deliver();
        this.#flushListeners.call(growth, 0);
        return result;
      }
      for (let pause = 0; pause < attempt; pause++) await randomDelay();
    }
    throw new CollabError(
      'write_conflict',
      'Too many changes at once to the same records: nothing was written, try again',
    );
  }

  async cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    this.#requireNoTransaction();
    const value = await this.#valueCache.get(key, partitions, compute);
    await randomDelay();
    return value;
  }

  async lastSeq(stream: string): Promise<number> {
    return this.#read(() => this.#database.lastSeq(stream));
  }

  async oldestSeq(stream: string): Promise<number> {
    return this.#read(() => this.#database.oldestSeq(stream));
  }

  async events(stream: string, since: number, limit: number, maxChars = Infinity): Promise<StoredEvent[]> {
    return this.#read(() => this.#database.events(stream, since, limit, maxChars));
  }

  async trimEvents(stream: string, seq: number): Promise<void> {
    return this.#read(() => this.#database.trimEvents(stream, seq));
  }

  follow(listener: EventListener): () => void {
    const delivered = new Map(this.#database.streams().map((stream) => [stream, this.#database.lastSeq(stream)]));
    const follower: Follower = {
      listener: new Listeners(this.#faults.report),
      delivered,
      ended: new Set(this.#database.ended()),
    };
    follower.listener.add(listener);
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  poll(): void {
    if (!this.#closed) this.#deliver();
  }

  onFlushed(listener: (growth: Growth, ms: number) => void): () => void {
    return this.#flushListeners.add(listener);
  }

  onListenerError(handle: (error: unknown) => void): () => void {
    return this.#faults.add(handle);
  }

  async partitions(
    prefix: string,
    { after = '', limit = Infinity }: Pick<RangeOptions, 'after' | 'limit'> = {},
  ): Promise<string[]> {
    return this.#read(() =>
      this.#database
        .partitions(prefix)
        .filter((name) => name > after)
        .slice(0, limit),
    );
  }

  async probe(): Promise<void> {
    this.#requireOpen();
    if (this.#database.full)
      throw new CollabError('storage_full', 'The disk has too little free space: writes are refused');
    if (this.#database.failing) throw new CollabError('storage_failed', 'The disk reports I/O errors');
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    this.#followers.clear();
  }

  async #read<T>(read: () => T): Promise<T> {
    this.#requireOpen();
    this.#requireNoTransaction();
    return delayed(read);
  }

  /** Right after the commit of the emissions. */
  #growthOf(emissions: readonly Emission[]): Growth {
    const ended = new Set(this.#database.ended());
    return new Map(emissions.map(({ stream }) => [stream, ended.has(stream) ? null : this.#database.lastSeq(stream)]));
  }

  #deliver(): void {
    // A listener has called `poll`: it receives what is left after it returns.
    if (this.#delivering) return;
    this.#delivering = true;
    for (const { listener, delivered, ended } of this.#followers) {
      for (const stream of this.#database.streams()) {
        for (const event of this.#database.events(stream, delivered.get(stream) ?? 0, Infinity)) {
          delivered.set(stream, event.seq);
          listener.call(stream, event);
        }
      }
      for (const stream of this.#database.ended()) {
        if (ended.has(stream)) continue;
        ended.add(stream);
        listener.call(stream, null);
      }
    }
    this.#delivering = false;
  }

  #requireOpen(): void {
    if (this.#closed) throw new Error('The store is closed');
  }

  /** Refuses what could wait for ever in an adapter whose transactions hold connections of a bounded pool. */
  #requireNoTransaction(): void {
    if (this.#working.get() === true) throw new Error('a transaction must read and write through `tx`');
  }
}

class MemoryTransaction implements Transaction {
  readonly reads: GuardedRead[] = [];
  readonly operations: Operation[] = [];
  readonly emissions: Emission[] = [];
  readonly unguarded: Reader;
  readonly #database: MemoryDatabase;

  constructor(database: MemoryDatabase) {
    this.#database = database;
    this.unguarded = {
      get: (partition, key) => delayed(() => database.get(partition, key)),
      range: (partition, options = {}) => delayed(() => database.range(partition, options)),
    };
  }

  get writes(): boolean {
    return this.operations.length > 0 || this.emissions.length > 0;
  }

  async get(partition: string, key: string): Promise<string | undefined> {
    return delayed(() => {
      this.reads.push({ partition, key, version: this.#database.versionOf(partition, key) });
      return this.#database.get(partition, key);
    });
  }

  range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    return this.unguarded.range(partition, options);
  }

  put(partition: string, key: string, value: string): void {
    this.operations.push({ partition, key, change: () => value });
  }

  delete(partition: string, key: string): void {
    this.operations.push({ partition, key, change: () => undefined });
  }

  update(partition: string, key: string, change: (current: string | undefined) => string | undefined): void {
    this.operations.push({ partition, key, change });
  }

  emit(stream: string, render: RenderEvent): void {
    this.emissions.push({ stream, render });
  }

  endStream(stream: string): void {
    this.emissions.push({ stream, render: null });
  }
}

/** Runs `read` between two delays. */
async function delayed<T>(read: () => T): Promise<T> {
  await randomDelay();
  const value = read();
  await randomDelay();
  return value;
}

/** Resolves after 0 to 3 event loop iterations. */
async function randomDelay(): Promise<void> {
  for (let left = Math.floor(Math.random() * MAX_DELAY); left > 0; left--)
    await new Promise((resolve) => setImmediate(resolve));
}
