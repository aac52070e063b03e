import type { StoreFault } from '../../../src/ports/store.ts';
import { type Cases, compact, emit } from './cases.ts';

/** Epoch, maintenance, readiness and closing. */
export const lifecycleCases: Cases = {
  'both stores have the same epoch': async (t, { store, peer }) => {
    t.ok(store.epoch.length > 0);
    t.equal(store.epoch, peer.epoch);
  },

  'maintenance changes nothing that reads show': async (t, { store, peer }) => {
    await store.transact(async (tx) => tx.put('p', 'k', '1'));
    await emit(store, 'stream');
    for (const view of [store, peer, store]) {
      await view.maintain();
      t.strictSame(
        [await peer.get('p', 'k'), await peer.lastSeq('stream'), await store.events('stream', 0, 10)],
        ['1', 1, [{ seq: 1, text: '{"seq":1}' }]],
      );
    }
  },

  'probe resolves while reads and writes succeed, and shows nothing to reads': async (t, { store, peer }) => {
    for (let i = 0; i < 2; i++) {
      await t.resolves(store.probe());
      await t.resolves(peer.transact(async (tx) => tx.put('p', 'k', String(i))));
    }
    t.strictSame(await store.partitions(''), ['p']);
  },

  'faults yields nothing while the data is as written, and each record and event that is damaged': async (
    t,
    { store, outside },
  ) => {
    const found = async (): Promise<StoreFault[]> => {
      const faults: StoreFault[] = [];
      for await (const fault of store.faults()) faults.push(fault);
      return faults;
    };
    await store.transact(async (tx) => {
      for (const key of ['whole', 'damaged']) tx.put('p', key, `"value of ${key}"`);
      for (const stream of ['intact', 'harmed']) tx.emit(stream, () => `"event of ${stream}"`);
    });
    await compact(store);
    t.strictSame(await found(), []);
    if (outside.damage === null) return;
    for (const text of ['value of damaged', 'event of harmed']) outside.damage(text);
    const faults = await found();
    t.equal(faults.length, 2);
    for (const name of ['damaged', 'harmed'])
      t.match(
        faults.find((fault) => fault.name.includes(name)),
        { fault: /^is / },
        name,
      );
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
    t.doesNotThrow(() => store.releaseSnapshot(), 'nor a release');
    const calls: Readonly<Record<string, () => unknown>> = {
      get: () => store.get('p', 'k'),
      range: () => store.range('p'),
      cached: () => store.cached('value', ['p'], () => Promise.resolve('x')),
      peek: () => store.peek('value'),
      lastSeq: () => store.lastSeq('stream'),
      oldestSeq: () => store.oldestSeq('stream'),
      events: () => store.events('stream', 0, 10),
      partitions: () => store.partitions(''),
      trimEvents: () => store.trimEvents('stream', 0),
      transact: () => store.transact(async (tx) => tx.put('p', 'k', 'late')),
      maintain: () => store.maintain(),
      probe: () => store.probe(),
      faults: async () => {
        for await (const _ of store.faults());
      },
      openSnapshots: () => store.openSnapshots(),
      killHolder: () =>
        store.killHolder({ table: 'tree', pid: 1, command: null, stopped: false, heldMs: 0, idleMs: 0, grownBytes: 0 }),
    };
    // Some of them throw instead of rejecting.
    for (const [name, call] of Object.entries(calls))
      await t.rejects(Promise.resolve().then(call), { message: 'The store is closed' }, name);
    t.equal(await peer.get('p', 'k'), 'confirmed', 'other processes are not affected');
  },
};
