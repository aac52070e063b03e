import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { storeConformance } from '../conformance/store.ts';

await t.test('MemoryStore keeps the contract of the Store', (t) =>
  storeConformance(t, () => {
    const store = new MemoryStore();
    return Promise.resolve({ store, peer: store, close: () => store.close() });
  }),
);

await t.test('MemoryShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, () => {
    const shared = new MemoryShared();
    return Promise.resolve({ shared, peer: shared });
  }),
);
