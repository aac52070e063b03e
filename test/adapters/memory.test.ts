import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import type { NewSharedRecord } from '../../src/ports/shared.ts';
import { MemoryDatabase } from '../doubles/memory-database.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { blobsConformance } from '../conformance/blobs.ts';
import { MemoryBlobs, MemoryBucket } from '../doubles/memory-blobs.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { storeConformance } from '../conformance/store.ts';
import type { Outside } from '../conformance/store/cases.ts';

/** Refuses records with long keys, as shared memory on a disk does. */
class RefusingShared extends MemoryShared {
  override async put(record: NewSharedRecord): Promise<void> {
    if (record.key.length > 1_000) throw new Error('the key is too long');
    await super.put(record);
  }
}

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
    };
    return Promise.resolve({ store, peer, outside, close });
  }),
);

await t.test('MemoryStore refuses what would make a transaction of another adapter wait for itself', async (t) => {
  const store = new MemoryStore();
  const uses: Readonly<Record<string, () => Promise<unknown>>> = {
    get: () => store.get('p', 'k'),
    range: () => store.range('p'),
    cached: () => store.cached('value', ['p'], () => Promise.resolve(1)),
    lastSeq: () => store.lastSeq('s'),
    events: () => store.events('s', 0, 10),
    partitions: () => store.partitions(''),
    transact: () => store.transact(async (tx) => tx.put('p', 'k', '1')),
  };
  for (const [name, use] of Object.entries(uses)) await t.rejects(store.transact(use), { message: /`tx`/ }, name);
  await store.transact(async (tx) => tx.put('p', 'k', '2'));
  t.equal(await store.get('p', 'k'), '2');
});

await t.test('MemoryStore refuses a commit that leaves a cached value valid that shows another one', async (t) => {
  const database = new MemoryDatabase();
  const [store, peer] = [new MemoryStore(database), new MemoryStore(database)];
  const inner = (): Promise<string | undefined> => store.cached('inner', ['p'], () => store.get('p', 'k'));
  await store.cached('value', ['q'], async () => [await inner(), await store.range('r', { prefix: 'a' })]);
  await peer.transact(async (tx) => tx.put('r', 'b', '1'));
  await t.rejects(
    peer.transact(async (tx) => tx.put('r', 'a1', '1')),
    { message: /"value" shows "a1" of r/ },
  );
  await t.rejects(
    store.transact(async (tx) => tx.put('p', 'k', '1')),
    { message: /"value" shows "k" of p/ },
  );
  await peer.transact(async (tx) => ['p', 'q'].forEach((partition) => tx.put(partition, 'k', '2')));
});

await t.test('MemoryShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, () => {
    const clock = new ManualClock(0);
    const shared = new MemoryShared(clock);
    return Promise.resolve({ shared, peer: shared, clock });
  }),
);

await t.test('MemoryBlobs keeps the contract of Blobs', (t) =>
  blobsConformance(t, {
    open: async (_t, full = false) => {
      const clock = new ManualClock(0);
      const bucket = new MemoryBucket(clock);
      bucket.full = full;
      const advance = (ms: number): void => clock.advance(ms);
      return { blobs: new MemoryBlobs(bucket), peer: new MemoryBlobs(bucket), advance };
    },
    noFilling: false,
    filling: async () => {
      const bucket = new MemoryBucket();
      return { blobs: new MemoryBlobs(bucket), fill: () => (bucket.full = true), empty: () => (bucket.full = false) };
    },
  }),
);

await t.test('DelayedShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, () => {
    const clock = new ManualClock(0);
    const memory = new RefusingShared(clock);
    return Promise.resolve({ shared: new DelayedShared(memory), peer: new DelayedShared(memory), clock });
  }),
);
