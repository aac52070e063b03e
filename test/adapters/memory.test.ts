import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { MemoryDatabase } from '../doubles/memory-database.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { blobsConformance } from '../conformance/blobs.ts';
import { MemoryBlobs, MemoryBucket } from '../doubles/memory-blobs.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { storeConformance } from '../conformance/store.ts';
import type { Outside } from '../conformance/store/cases.ts';

await t.test('MemoryStore keeps the contract of the Store', (t) =>
  storeConformance(t, (_t, disk) => {
    const database = new MemoryDatabase();
    database.full = disk === 'full';
    database.failing = disk === 'fails';
    const [store, peer] = [new MemoryStore(database), new MemoryStore(database)];
    const close = async (): Promise<void> => {
      await Promise.all([store.close(), peer.close()]);
    };
    const outside: Outside = {
      commit: (partition, key, value) => void database.commit([], [{ partition, key, change: () => value }], []),
      damage: null,
      holdSnapshot: null,
    };
    return Promise.resolve({ store, peer, outside, close });
  }),
);

await t.test('MemoryShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, () => {
    const shared = new MemoryShared();
    return Promise.resolve({ shared, peer: shared });
  }),
);

await t.test('MemoryBlobs keeps the contract of Blobs', (t) =>
  blobsConformance(t, (_t, full = false) => {
    const bucket = new MemoryBucket();
    bucket.full = full;
    return Promise.resolve({ blobs: new MemoryBlobs(bucket), peer: new MemoryBlobs(bucket) });
  }),
);

await t.test('DelayedShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, () => {
    const memory = new MemoryShared();
    return Promise.resolve({ shared: new DelayedShared(memory), peer: new DelayedShared(memory) });
  }),
);
