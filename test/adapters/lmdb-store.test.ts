import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { storeConformance } from '../conformance/store.ts';

let folder = 0;

await storeConformance(t, async () => {
  const path = `${t.testdir()}/${folder++}`;
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  const peer = await openLmdbStore({ path, minFreeBytes: 0 });
  return {
    store,
    peer,
    close: async () => {
      await store.close();
      await peer.close();
    },
  };
});
