import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import type { Store, Transaction } from '../../ports/store.ts';
import { ForwardingStore } from '../records/forwarding-store.ts';

/** A record that a transaction writes or deletes. */
export interface WrittenRecord {
  readonly partition: string;
  readonly key: string;
}

/** Adds the record of an act to a transaction, and gets the records that the transaction writes, in order. */
type RecordAct = (tx: Transaction, written: readonly WrittenRecord[]) => Promise<void>;

/**
 * A store whose first commit records an act too: `record` runs at the end of the transaction. A transaction that fails
 * or writes nothing does not count as the first. Later commits record nothing.
 */
export class RecordingStore extends ForwardingStore {
  readonly #record: RecordAct;
  readonly #lock = new KeyedLock();
  #isRecorded = false;

  constructor(store: Store, record: RecordAct) {
    super(store);
    this.#record = record;
  }

  override transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    // Until the act is recorded, transactions wait for each other, so that it is recorded once.
    return this.#isRecorded ? super.transact(work) : this.#lock.run('', () => this.#transactFirst(work));
  }

  async #transactFirst<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#isRecorded) return super.transact(work);
    let writes = false;
    const result = await super.transact(async (tx) => {
      const written: WrittenRecord[] = [];
      const done = await work(watched(tx, written));
      writes = written.length > 0;
      if (writes) await this.#record(tx, written);
      return done;
    });
    this.#isRecorded = writes;
    return result;
  }
}

function watched(tx: Transaction, written: WrittenRecord[]): Transaction {
  return {
    get: (partition, key) => tx.get(partition, key),
    range: (partition, options) => tx.range(partition, options),
    unguarded: tx.unguarded,
    put: (partition, key, value) => {
      written.push({ partition, key });
      tx.put(partition, key, value);
    },
    delete: (partition, key) => {
      written.push({ partition, key });
      tx.delete(partition, key);
    },
    update: (partition, key, change) => {
      written.push({ partition, key });
      tx.update(partition, key, change);
    },
    emit: (stream, render) => tx.emit(stream, render),
    endStream: (stream) => tx.endStream(stream),
  };
}
