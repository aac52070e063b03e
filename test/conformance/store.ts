import type { Test } from 'tap';
import { cacheCases } from './store/cache.ts';
import type { Cases, Pair } from './store/cases.ts';
import { eventCases } from './store/events.ts';
import { freshnessCases } from './store/freshness.ts';
import { lifecycleCases } from './store/lifecycle.ts';
import { listenerCases } from './store/listeners.ts';
import { recordCases } from './store/records.ts';
import { transactionCases } from './store/transactions.ts';

/** Two open stores over the same data, like those of two processes. */
export interface OpenStores extends Pair {
  close(): Promise<void>;
}

/** How writes of both stores end: with success, as on a full disk, or with an I/O error. */
export type Disk = 'works' | 'full' | 'fails';

const cases: Cases = {
  ...recordCases,
  ...freshnessCases,
  ...transactionCases,
  ...eventCases,
  ...listenerCases,
  ...cacheCases,
  ...lifecycleCases,
};

/** Asserts every sentence of ports/store.ts for an adapter. `open` opens two stores over new, empty data. */
export async function storeConformance(t: Test, open: (t: Test, disk: Disk) => Promise<OpenStores>): Promise<void> {
  for (const [name, run] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const { close, ...pair } = await open(t, 'works');
      t.teardown(close);
      await run(t, pair);
    });
  }

  for (const [disk, code] of [
    ['full', 'storage_full'],
    ['fails', 'storage_failed'],
  ] as const) {
    await t.test(
      `when the disk ${disk === 'full' ? 'is full' : disk}, writes are refused with ${code} and reads succeed`,
      async (t) => {
        const { store, peer, close } = await open(t, disk);
        t.teardown(close);
        const flushed: unknown[] = [];
        store.onFlushed((growth) => flushed.push(growth));
        const write = store.transact(async (tx) => {
          tx.put('p', 'k', '1');
          tx.emit('stream', (seq) => `{"seq":${seq}}`);
        });
        await t.rejects(write, { code });
        await t.rejects(store.probe(), disk === 'full' ? { code } : { message: /./ });
        for (const view of [store, peer])
          t.strictSame([await view.get('p', 'k'), await view.lastSeq('stream')], [undefined, 0]);
        t.equal(
          await store.transact(async (tx) => tx.get('p', 'k')),
          undefined,
          'a transaction without writes succeeds',
        );
        t.strictSame(flushed, []);
      },
    );
  }
}
