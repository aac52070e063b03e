import type { Test } from 'tap';
import type { MoveState } from '../../src/model/move.ts';
import type { Store } from '../../src/ports/store.ts';
import type { StoredRecord, StoreTransfer } from '../../src/ports/store-transfer.ts';

/** A store, and the same store as a whole. */
export interface TransferSetup {
  /** Opens the store as a server does. */
  open(): Promise<Store>;
  /** Opens it as a whole. */
  transfer(): Promise<StoreTransfer>;
}

const STATE: MoveState = { kind: 'moving', other: 'elsewhere', epoch: 'abc' };

/** Asserts the contract of `StoreTransfer`. `setUp` returns a new, empty store each time. */
export async function storeTransferConformance(t: Test, setUp: (t: Test) => Promise<TransferSetup>): Promise<void> {
  const all = async (transfer: StoreTransfer, partition?: string): Promise<string[]> => {
    const found: StoredRecord[] = [];
    for (;;) {
      const last = found.at(-1) ?? null;
      const page = await (partition === undefined ? transfer.scan(last) : transfer.records(partition, last));
      if (page.length === 0) return found.map(({ partition, key, value }) => `${partition} ${key} ${value}`);
      found.push(...page);
    }
  };

  await t.test(
    'reads all records in order, beside a store that writes, and names the partitions that changed',
    async (t) => {
      const { open, transfer: whole } = await setUp(t);
      const store = await open();
      const names = Array.from({ length: 6_000 }, (_, i) => String(i).padStart(4, '0'));
      for (let from = 0; from < names.length; from += 1_000)
        await store.transact(async (tx) => {
          for (const key of names.slice(from, from + 1_000)) tx.put('many', key, '1');
        });
      await store.transact(async (tx) => {
        tx.put('a!', 'k', 'after a');
        tx.put('a', 'k', 'é\u2028 "\\');
        tx.put('z', '~', 'last');
      });
      const source = await whole();
      t.equal(source.epoch, store.epoch);
      t.equal(await source.changes(), null, 'not known at first');
      const expected = ['a k é\u2028 "\\', 'a! k after a', ...names.map((key) => `many ${key} 1`), 'z ~ last'];
      t.strictSame(await all(source), expected);
      t.strictSame(await source.changes(), new Set(), 'reading changes nothing');
      await store.transact(async (tx) => {
        tx.put('new', 'k', '1');
        tx.delete('z', '~');
        tx.update('many', '0000', () => '2');
      });
      t.strictSame([...((await source.changes()) ?? [])].sort(), ['many', 'new', 'z']);
      t.strictSame(await all(source, 'z'), []);
      t.strictSame(await all(source, 'new'), ['new k 1']);
      t.strictSame((await all(source, 'many')).slice(0, 2), ['many 0000 2', 'many 0001 1']);
      t.equal(await source.get('many', '0000'), '2');
      t.equal(await source.get('many', 'none'), undefined);
      t.strictSame(await source.changes(), new Set());
      await source.close();
      await store.close();
    },
  );

  await t.test('reads streams and events', async (t) => {
    const { open, transfer: whole } = await setUp(t);
    const store = await open();
    await store.transact(async (tx) => {
      for (let i = 0; i < 3; i++) tx.emit('s', (seq) => `{"seq":${seq}}`);
      tx.emit('ended', () => '{}');
    });
    await store.transact(async (tx) => tx.endStream('ended'));
    const source = await whole();
    t.strictSame(await source.streams(), [{ stream: 's', oldest: 1, last: 3 }]);
    t.strictSame(await source.events('s', 1, 1, 100), [{ seq: 2, text: '{"seq":2}' }]);
    t.strictSame(await source.events('s', 0, 9, 1), [{ seq: 1, text: '{"seq":1}' }], 'at least one');
    t.strictSame(await source.events('s', 3, 9, 100), []);
    await store.transact(async (tx) => tx.emit('s', () => '{}'));
    t.strictSame(await source.streams(), [{ stream: 's', oldest: 1, last: 4 }]);
    await source.close();
    await store.close();
  });

  await t.test('with a state no process commits, until it is removed', async (t) => {
    const { open, transfer: whole } = await setUp(t);
    const [store, source] = [await open(), await whole()];
    t.equal(await source.state(), undefined);
    let refused = false;
    const answered: string[] = [];
    const writing = (async () => {
      for (let i = 0; !refused; i++) {
        try {
          await store.transact(async (tx) => tx.put('w', String(i), '1'));
          answered.push(String(i));
        } catch (error) {
          refused = true;
          t.match(error, { code: 'store_moving', message: /being moved/ });
        }
      }
    })();
    while (answered.length < 10) await new Promise((resolve) => setImmediate(resolve));
    await source.setState(STATE);
    const then = (await all(source, 'w')).length;
    await writing;
    t.equal(then, answered.length, 'nothing was confirmed after that');
    t.strictSame(await source.state(), STATE);
    t.notOk(
      (await all(source)).some((record) => record.startsWith('moves ')),
      'which is no record of the store',
    );
    await t.rejects(
      store.transact(async (tx) => tx.emit('s', () => '{}')),
      { code: 'store_moving' },
    );
    await t.rejects(store.probe());
    t.equal(await store.get('w', '0'), '1', 'reads go on');

    await source.resume(false);
    t.equal(await source.state(), undefined);
    await store.transact(async (tx) => tx.put('w', 'again', '1'));
    await store.probe();
    t.equal(source.epoch, store.epoch);

    await source.setState({ ...STATE, kind: 'moved' });
    await store.close();
    await source.resume(true);
    const again = await open();
    t.equal(again.epoch, source.epoch);
    t.not(again.epoch, store.epoch);
    await again.transact(async (tx) => tx.put('w', 'new', '1'));
    await again.close();
    await source.close();
  });

  await t.test('writes records, and events at any position, that a store then has', async (t) => {
    const { open, transfer: whole } = await setUp(t);
    const target = await whole();
    await target.setState({ ...STATE, kind: 'unfinished' });
    await target.write([
      { partition: 'p', key: 'a', value: "é\\'" },
      { partition: 'p', key: 'b', value: '1' },
    ]);
    await target.write([
      { partition: 'p', key: 'b', value: undefined },
      { partition: 'p', key: 'a', value: '2' },
      { partition: 'q', key: 'c', value: '3' },
    ]);
    t.strictSame(await all(target), ['p a 2', 'q c 3']);
    const events = (from: number, to: number): { seq: number; text: string }[] =>
      Array.from({ length: to - from + 1 }, (_, i) => ({ seq: from + i, text: `{"n":${from + i}}` }));
    await target.append('s', events(41, 700));
    await target.append('s', events(701, 705));
    await target.append('t', events(1, 2));
    await target.removeStream('t');
    await target.append('t', events(8, 9));
    t.strictSame(
      (await target.streams()).sort((one, other) => (one.stream < other.stream ? -1 : 1)),
      [
        { stream: 's', oldest: 41, last: 705 },
        { stream: 't', oldest: 8, last: 9 },
      ],
    );
    await target.finish('0123456789abcdef');
    t.equal(target.epoch, '0123456789abcdef');
    t.equal(await target.state(), undefined);
    await target.close();

    const store = await open();
    t.equal(store.epoch, '0123456789abcdef');
    t.equal(await store.get('p', 'a'), '2');
    t.equal(await store.get('p', 'b'), undefined);
    t.strictSame(await store.partitions(''), ['p', 'q']);
    t.equal(await store.oldestSeq('s'), 41);
    t.strictSame(await store.events('s', 0, 1_000), events(41, 705));
    await store.transact(async (tx) => {
      tx.emit('s', (seq) => `{"n":${seq}}`);
      tx.update('p', 'a', (value) => `${value}!`);
    });
    t.equal(await store.lastSeq('s'), 706);
    t.equal(await store.get('p', 'a'), '2!');
    await store.close();
  });
}
