import type { Entry, EventListener, Growth, RangeOptions, Store, StoredEvent, Transaction } from '../../ports/store.ts';
import { type Lease, LeaseLostError, requireLease } from './leases.ts';

/**
 * A store for work under a lease: each transaction, and each trim, rejects with `LeaseLostError` once another worker has
 * taken the lease. A trim that has begun before that may end after it: it must remove only what the work of every
 * holder has finished. Reads are those of the store.
 */
export class FencedStore implements Store {
  readonly #store: Store;
  readonly #lease: Lease;
  readonly #onLost: (error: LeaseLostError) => void;

  /** @param onLost called with each refusal, before it is thrown; must not throw */
  constructor(store: Store, lease: Lease, onLost: (error: LeaseLostError) => void) {
    this.#store = store;
    this.#lease = lease;
    this.#onLost = onLost;
  }

  get epoch(): string {
    return this.#store.epoch;
  }

  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#reporting(
      this.#store.transact(async (tx) => {
        await requireLease(tx, this.#lease);
        return work(tx);
      }),
    );
  }

  async trimEvents(stream: string, seq: number): Promise<void> {
    await this.#reporting(requireLease(this.#store, this.#lease));
    await this.#store.trimEvents(stream, seq);
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

  async #reporting<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof LeaseLostError) this.#onLost(error);
      throw error;
    }
  }
}
