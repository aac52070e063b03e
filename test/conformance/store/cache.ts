import type { Store } from '../../../src/ports/store.ts';
import type { Cases } from './cases.ts';

/** `cached`. */
export const cacheCases: Cases = {
  'a value is computed once, and again after a write to one of its partitions by any process': async (
    t,
    { store, peer },
  ) => {
    let computed = 0;
    const read = (view: Store): Promise<string> =>
      view.cached('value', ['p', 'q'], async () => {
        computed++;
        return [...(await view.range('p')), ...(await view.range('q'))].map(({ value }) => value).join();
      });
    await store.transact(async (tx) => tx.put('p', 'a', '1'));
    t.equal(await read(store), '1');
    await store.transact(async (tx) => tx.put('other', 'a', 'x'));
    t.equal(await read(store), '1');
    t.equal(computed, 1);
    await peer.transact(async (tx) => tx.put('p', 'b', '2'));
    t.equal(await read(store), '1,2');
    await store.transact(async (tx) => tx.update('q', 'c', () => '3'));
    t.equal(await read(store), '1,2,3');
    await peer.transact(async (tx) => tx.delete('p', 'a'));
    t.equal(await read(store), '2,3');
    t.equal(computed, 4);
  },

  'concurrent calls share one computation, and a rejection is not kept': async (t, { store }) => {
    let computed = 0;
    const compute = async (): Promise<number> => {
      await store.get('p', 'k');
      return ++computed;
    };
    t.strictSame(
      await Promise.all(Array.from({ length: 5 }, () => store.cached('value', ['p'], compute))),
      [1, 1, 1, 1, 1],
    );
    await t.rejects(
      store.cached('failing', ['p'], () => Promise.reject(new Error('once'))),
      /once/,
    );
    t.equal(await store.cached('failing', ['p'], () => Promise.resolve('fine')), 'fine');
  },

  'a value that becomes invalid during its computation is not kept': async (t, { store, peer }) => {
    let first = true;
    const read = (): Promise<string | undefined> =>
      store.cached('value', ['p'], async () => {
        const value = await store.get('p', 'k');
        if (first) {
          first = false;
          await peer.transact(async (tx) => tx.put('p', 'k', 'new'));
        }
        return value;
      });
    t.equal(await read(), undefined);
    t.equal(await read(), 'new');
  },
};
