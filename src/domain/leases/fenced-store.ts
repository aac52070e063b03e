import type { Store, Transaction } from '../../ports/store.ts';
import { ForwardingStore } from '../records/forwarding-store.ts';
import { type Lease, LeaseLostError, requireLease } from './leases.ts';

/**
 * A store for work under a lease: each transaction, and each trim, rejects with `LeaseLostError` once another worker has
 * taken the lease. A trim that has begun before that may end after it: it must remove only what the work of every
 * holder has finished. Reads are those of the store.
 */
export class FencedStore extends ForwardingStore {
  readonly #lease: Lease;
  readonly #onLost: (error: LeaseLostError) => void;

  /** @param onLost called with each refusal, before it is thrown; must not throw */
  constructor(store: Store, lease: Lease, onLost: (error: LeaseLostError) => void) {
    super(store);
    this.#lease = lease;
    this.#onLost = onLost;
  }

  override transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#reporting(
      super.transact(async (tx) => {
        await requireLease(tx, this.#lease);
        return work(tx);
      }),
    );
  }

  override async trimEvents(stream: string, seq: number): Promise<void> {
    await this.#reporting(requireLease(this, this.#lease));
    await super.trimEvents(stream, seq);
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
