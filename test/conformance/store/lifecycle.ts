import type { Cases } from './cases.ts';

/** Epoch, readiness and closing. */
export const lifecycleCases: Cases = {
  'both stores have the same epoch': async (t, { store, peer }) => {
    t.ok(store.epoch.length > 0);
    t.equal(store.epoch, peer.epoch);
  },

  'probe resolves while reads and writes succeed, and shows nothing to reads': async (t, { store, peer }) => {
    for (let i = 0; i < 2; i++) {
      await t.resolves(store.probe());
      await t.resolves(peer.transact(async (tx) => tx.put('p', 'k', String(i))));
    }
    t.strictSame(await store.partitions(''), ['p']);
  },

  'close commits or rejects pending transactions; afterwards reads and writes fail': async (t, { store, peer }) => {
    await t.resolves(store.probe());
    const pending = Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => store.transact(async (tx) => tx.put('pending', String(i), 'x'))),
    );
    await store.transact(async (tx) => tx.put('p', 'k', 'confirmed'));
    const late = store
      .transact(async (tx) => tx.put('pending', 'late', 'x'))
      .then(
        () => 'committed',
        () => 'rejected',
      );
    await store.close();
    for (const [i, { status }] of (await pending).entries())
      t.equal(await peer.get('pending', String(i)), status === 'fulfilled' ? 'x' : undefined);
    t.equal(await peer.get('pending', 'late'), (await late) === 'committed' ? 'x' : undefined);
    await t.resolves(store.close(), 'closing again has no effect');
    t.doesNotThrow(() => store.poll(), 'nor has a poll');
    const calls: Readonly<Record<string, () => unknown>> = {
      get: () => store.get('p', 'k'),
      range: () => store.range('p'),
      cached: () => store.cached('value', ['p'], () => Promise.resolve('x')),
      lastSeq: () => store.lastSeq('stream'),
      oldestSeq: () => store.oldestSeq('stream'),
      events: () => store.events('stream', 0, 10),
      partitions: () => store.partitions(''),
      trimEvents: () => store.trimEvents('stream', 0),
      transact: () => store.transact(async (tx) => tx.put('p', 'k', 'late')),
      probe: () => store.probe(),
    };
    // Some of them throw instead of rejecting.
    for (const [name, call] of Object.entries(calls))
      await t.rejects(Promise.resolve().then(call), { message: 'The store is closed' }, name);
    t.equal(await peer.get('p', 'k'), 'confirmed', 'other processes are not affected');
  },
};
