import type { RangeOptions, Store } from '../../../src/ports/store.ts';
import { type Cases, compact } from './cases.ts';

const keysOf = async (store: Store, options?: RangeOptions): Promise<string[]> =>
  (await store.range('p', options)).map(({ key }) => key);

/** Records, ranges and the names of partitions. */
export const recordCases: Cases = {
  'a record is absent, written, changed and deleted, for both stores': async (t, { store, peer }) => {
    t.equal(await store.get('p', 'k'), undefined);
    await store.transact(async (tx) => tx.put('p', 'k', '"one"'));
    for (const view of [store, peer]) t.equal(await view.get('p', 'k'), '"one"');
    await peer.transact(async (tx) => tx.put('p', 'k', '"two ü 😀"'));
    for (const view of [store, peer]) t.equal(await view.get('p', 'k'), '"two ü 😀"');
    await store.transact(async (tx) => tx.delete('p', 'k'));
    for (const view of [store, peer]) t.equal(await view.get('p', 'k'), undefined);
    await t.resolves(
      store.transact(async (tx) => tx.delete('p', 'k')),
      'deleting it again has no effect',
    );
  },

  'a deleted record is gone, also after maintenance, and can be written again': async (t, { store, peer }) => {
    await store.transact(async (tx) => {
      for (const key of ['a', 'b', 'c']) tx.put('p', key, key);
    });
    await compact(store);
    await peer.transact(async (tx) => tx.delete('p', 'b'));
    for (const maintenance of [() => Promise.resolve(), () => compact(store), () => compact(peer)]) {
      await maintenance();
      for (const view of [store, peer]) {
        t.equal(await view.get('p', 'b'), undefined);
        t.strictSame(await keysOf(view), ['a', 'c']);
        t.equal(await view.transact(async (tx) => tx.get('p', 'b')), undefined);
      }
    }
    await store.transact(async (tx) => tx.put('p', 'b', 'again'));
    for (const view of [store, peer])
      t.strictSame([await view.get('p', 'b'), await keysOf(view)], ['again', ['a', 'b', 'c']]);
  },

  'every text is kept, under every name': async (t, { store, peer }) => {
    const printable = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i)).join('');
    const texts = {
      empty: '',
      lines: 'one\ntwo\r\n\u2028',
      control: '\0\u0001\u007f',
      unicode: 'ü€😀',
      long: 'x'.repeat(300_000),
    };
    await store.transact(async (tx) => {
      for (const [key, value] of Object.entries(texts)) tx.put('texts', key, value);
      tx.put(printable, printable, 'printable');
      tx.put('p', 'k'.repeat(1_899), 'longest key');
      tx.put('p'.repeat(1_899), 'k', 'longest partition');
    });
    for (let round = 0; round < 2; round++) {
      for (const view of [store, peer]) {
        for (const [key, value] of Object.entries(texts)) t.ok((await view.get('texts', key)) === value, key);
        t.strictSame(await view.range(printable), [{ key: printable, value: 'printable' }]);
        t.equal(await view.get('p', 'k'.repeat(1_899)), 'longest key');
        t.equal(await view.get('p'.repeat(1_899), 'k'), 'longest partition');
      }
      await compact(store);
    }
  },

  'a text and an event are kept whatever is committed with them': async (t, { store, peer }) => {
    const texts = ['', 'plain', `it's`, 'back\\slash', String.raw`{"body":"\\n'"}`, 'two\nlines'];
    const subsets = Array.from({ length: 2 ** texts.length }, (_, bits) => texts.filter((_text, i) => bits & (1 << i)));
    for (const [n, chosen] of subsets.entries())
      await store.transact(async (tx) => {
        for (const [i, text] of chosen.entries()) {
          tx.put(`set-${n}`, String(i), text);
          tx.emit('stream', () => text);
        }
      });
    for (const [n, chosen] of subsets.entries())
      t.strictSame(
        (await peer.range(`set-${n}`)).map(({ value }) => value),
        chosen,
      );
    t.strictSame(
      (await peer.events('stream', 0, 1_000)).map(({ text }) => text),
      subsets.flat(),
    );
  },

  'a range is ordered and within its bounds, and partitions are separate': async (t, { store, peer }) => {
    await store.transact(async (tx) => {
      for (const key of ['c/2', 'a/1', 'c/1', 'b/9', 'c/3', 'c/']) tx.put('p', key, key);
      tx.put('p0', 'c/0', 'other');
      tx.put('p/', 'c/0', 'other');
      tx.put('o', 'c/0', 'other');
    });
    await compact(store);
    await store.transact(async (tx) => {
      tx.put('p', 'c/25', 'c/25');
      tx.delete('p', 'c/1');
    });
    for (let round = 0; round < 2; round++) {
      for (const view of [store, peer]) {
        t.strictSame(await keysOf(view), ['a/1', 'b/9', 'c/', 'c/2', 'c/25', 'c/3']);
        t.strictSame(
          (await view.range('p', { prefix: 'c/' })).map(({ value }) => value),
          ['c/', 'c/2', 'c/25', 'c/3'],
        );
        t.strictSame(await keysOf(view, { prefix: 'c/', after: 'c/2' }), ['c/25', 'c/3']);
        t.strictSame(
          await keysOf(view, { prefix: 'c/', after: 'c/24' }),
          ['c/25', 'c/3'],
          'after a key that does not exist',
        );
        t.strictSame(
          await keysOf(view, { prefix: 'c/', after: 'a/1' }),
          ['c/', 'c/2', 'c/25', 'c/3'],
          'after a key before the prefix',
        );
        t.strictSame(await keysOf(view, { prefix: 'b/', after: 'c/2' }), [], 'after a key behind the prefix');
        t.strictSame(await keysOf(view, { prefix: 'c/', reverse: true }), ['c/3', 'c/25', 'c/2', 'c/']);
        t.strictSame(await keysOf(view, { prefix: 'c/', after: 'c/25', reverse: true }), ['c/2', 'c/']);
        t.strictSame(
          await keysOf(view, { prefix: 'b/', after: 'c/2', reverse: true }),
          ['b/9'],
          'backwards from a key behind the prefix',
        );
        t.strictSame(
          await keysOf(view, { prefix: 'c/', after: 'a/1', reverse: true }),
          [],
          'backwards from a key before the prefix',
        );
        t.strictSame(await keysOf(view, { prefix: 'c/', limit: 2 }), ['c/', 'c/2']);
        t.strictSame(await keysOf(view, { prefix: 'c/', reverse: true, limit: 1 }), ['c/3']);
        t.strictSame(await keysOf(view, { limit: 0 }), []);
        t.strictSame(await view.range('nothing'), []);
      }
      await compact(peer);
    }
  },

  'the names of partitions are listed in order, by prefix and in pages': async (t, { store, peer }) => {
    const names = ['a', 'a!b', 'a/b', 'a/b/c', 'a0', 'b/1', 'b/2', 'b~'];
    await store.transact(async (tx) => {
      for (const name of names) for (const key of ['k/1', 'k/2']) if (name !== 'a/b/c') tx.put(name, key, '1');
    });
    await compact(store);
    await store.transact(async (tx) => {
      tx.put('a/b/c', 'k', '1');
      tx.put('b/1', 'k/3', '1');
    });
    for (const view of [store, peer]) {
      t.strictSame(await view.partitions(''), names);
      t.strictSame(await view.partitions('a/'), ['a/b', 'a/b/c']);
      t.strictSame(await view.partitions('b/', { after: 'b/1' }), ['b/2']);
      t.strictSame(await view.partitions('a', { limit: 3 }), ['a', 'a!b', 'a/b']);
      t.strictSame(await view.partitions('a', { after: 'a/b', limit: 3 }), ['a/b/c', 'a0']);
      t.strictSame(await view.partitions('a', { limit: 0 }), []);
      t.strictSame(await view.partitions('c'), []);
    }
  },
};
