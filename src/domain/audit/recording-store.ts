import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import type { Store, Transaction } from '../../ports/store.ts';

/** A record that a transaction writes or deletes. */
export interface WrittenRecord {
  readonly partition: string;
  readonly key: string;
}

/**
 * Wraps a store so that its first commit records an act too: `record` runs at the end of the transaction and gets the
 * records that it writes, in order. A transaction that fails or writes nothing does not count as the first. Later
 * commits record nothing.
 */
export function recordingStore(
  store: Store,
  record: (tx: Transaction, written: readonly WrittenRecord[]) => Promise<void>,
): Store {
  const lock = new KeyedLock();
  let isRecorded = false;
  const attempt: Store['transact'] = async (work) => {
    if (isRecorded) return store.transact(work);
    let writes = false;
    const result = await store.transact(async (tx) => {
      const written: WrittenRecord[] = [];
      const done = await work(watched(tx, written));
      writes = written.length > 0;
      if (writes) await record(tx, written);
      return done;
    });
    isRecorded = writes;
    return result;
  };
  // Until the act is recorded, transactions wait for each other, so that it is recorded once.
  const transact: Store['transact'] = (work) => (isRecorded ? store.transact(work) : lock.run('', () => attempt(work)));
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'transact') return transact;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
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
