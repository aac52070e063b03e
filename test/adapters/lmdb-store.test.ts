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

await t.test('a value that was read from the base table is replaced by later writes, also once these are in the base table', async (t) => {
  const path = t.testdir();
  const [store, peer] = [await openLmdbStore({ path, minFreeBytes: 0 }), await openLmdbStore({ path, minFreeBytes: 0 })];
  t.teardown(() => Promise.all([store.close(), peer.close()]));
  let writes = 0;
  const moveToBaseTable = async (): Promise<void> => {
    // A checkpoint drops from memory what the one before it wrote, and does nothing without a new commit.
    for (let i = 0; i < 3; i++) {
      await peer.transact(async (tx) => tx.put('other', 'k', String(writes++)));
      await peer.checkpoint();
      store.poll();
    }
  };
  const read = async (): Promise<(string | undefined)[]> => [await store.get('p', 'changed'), await store.get('p', 'deleted'), await store.get('p', 'created')];
  await peer.transact(async (tx) => {
    tx.put('p', 'changed', 'old');
    tx.put('p', 'deleted', 'old');
  });
  await moveToBaseTable();
  t.strictSame(await read(), ['old', 'old', undefined]);
  await peer.transact(async (tx) => {
    tx.put('p', 'changed', 'new');
    tx.delete('p', 'deleted');
    tx.put('p', 'created', 'new');
  });
  t.strictSame(await read(), ['new', undefined, 'new']);
  await moveToBaseTable();
  t.strictSame(await read(), ['new', undefined, 'new']);
});
