import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { storeConformance } from '../conformance/store.ts';

let folder = 0;

await storeConformance(t, async ({ full }) => {
  const options = { path: `${t.testdir()}/${folder++}`, minFreeBytes: full ? Number.MAX_SAFE_INTEGER : 0 };
  const store = await openLmdbStore(options);
  const peer = await openLmdbStore(options);
  return {
    store,
    peer,
    close: async () => {
      await store.close();
      await peer.close();
    },
  };
});

// The port lets an adapter always return undefined.
await t.test('peek returns the value while it is valid', async (t) => {
  const path = t.testdir();
  const [store, peer] = [await openLmdbStore({ path, minFreeBytes: 0 }), await openLmdbStore({ path, minFreeBytes: 0 })];
  t.teardown(() => Promise.all([store.close(), peer.close()]));
  const compute = async (): Promise<string> => (await store.get('p', 'k')) ?? 'none';
  await store.cached('value', ['p'], compute);
  t.equal(store.peek('value'), 'none');
  await peer.transact(async (tx) => tx.put('other', 'k', 'x'));
  t.equal(store.peek('value'), 'none');
  await peer.transact(async (tx) => tx.put('p', 'k', '1'));
  t.equal(store.peek('value'), undefined);
  await store.cached('value', ['p'], compute);
  t.equal(store.peek('value'), '1');
});
