import type { Test } from 'tap';
import type { Store } from '../../src/ports/store.ts';
import { cacheCases } from './store/cache.ts';
import type { Cases } from './store/cases.ts';
import { eventCases } from './store/events.ts';
import { lifecycleCases } from './store/lifecycle.ts';
import { listenerCases } from './store/listeners.ts';
import { recordCases } from './store/records.ts';
import { transactionCases } from './store/transactions.ts';

/** Two open stores over the same data, like those of two processes. */
export interface OpenStores {
  readonly store: Store;
  readonly peer: Store;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** The store refuses writes as on a full disk. */
  readonly full: boolean;
}

const cases: Cases = { ...recordCases, ...transactionCases, ...eventCases, ...listenerCases, ...cacheCases, ...lifecycleCases };

/** Asserts every sentence of ports/store.ts for an adapter. `open` opens two stores over new, empty data. */
export async function storeConformance(t: Test, open: (options: OpenOptions) => Promise<OpenStores>): Promise<void> {
  for (const [name, run] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { store, peer, close } = await open({ full: false });
      t.teardown(close);
      await run(t, { store, peer });
    });
  }

  await t.test('on a full disk writes are refused with storage_full and reads succeed', async (t) => {
    const { store, peer, close } = await open({ full: true });
    t.teardown(close);
    const write = store.transact(async (tx) => {
      tx.put('p', 'k', '1');
      tx.emit('stream', (seq) => `{"seq":${seq}}`);
    });
    await t.rejects(write, { code: 'storage_full' });
    await t.rejects(store.probe(), { code: 'storage_full' });
    for (const view of [store, peer]) t.strictSame([await view.get('p', 'k'), await view.lastSeq('stream')], [undefined, 0]);
    t.equal(await store.transact(async (tx) => tx.get('p', 'k')), undefined, 'a transaction without writes succeeds');
  });
}
