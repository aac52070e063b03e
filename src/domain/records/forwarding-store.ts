import type { Entry, EventListener, Growth, RangeOptions, Store, StoredEvent, Transaction } from '../../ports/store.ts';

/** A store that passes each call on to another one: the base of stores that do some of them differently. */
export class ForwardingStore implements Store {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  get epoch(): string {
    return this.#store.epoch;
  }

  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#store.transact(work);
  }

  trimEvents(stream: string, seq: number): Promise<void> {
    return this.#store.trimEvents(stream, seq);
  }

  get(partition: string, key: string): Promise<string | undefined> {
    return this.#store.get(partition, key);
  }

  range(partition: string, options?: RangeOptions): Promise<Entry[]> {
    return this.#store.range(partition, options);
  }

  cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    return this.#store.cached(key, partitions, compute);
  }

  lastSeq(stream: string): Promise<number> {
    return this.#store.lastSeq(stream);
  }

  oldestSeq(stream: string): Promise<number> {
    return this.#store.oldestSeq(stream);
  }

  events(stream: string, since: number, limit: number, maxChars?: number): Promise<StoredEvent[]> {
    return this.#store.events(stream, since, limit, maxChars);
  }

  partitions(prefix: string, options?: Pick<RangeOptions, 'after' | 'limit'>): Promise<string[]> {
    return this.#store.partitions(prefix, options);
  }

  follow(listener: EventListener): () => void {
    return this.#store.follow(listener);
  }

  poll(growth?: Growth | null): void {
    this.#store.poll(growth);
  }

  onFlushed(listener: (growth: Growth, ms: number) => void): () => void {
    return this.#store.onFlushed(listener);
  }

  onListenerError(handle: (error: unknown) => void): () => void {
    return this.#store.onListenerError(handle);
  }

  probe(): Promise<void> {
    return this.#store.probe();
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
