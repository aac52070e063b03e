import t, { type Test } from 'tap';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** The largest batch, as in docs/decisions/0001-log-first-store.md. */
const LARGEST = 16_318_464;
const tooLarge = {
  code: 'payload_too_large',
  message:
    /^The change is too large to be stored: it takes \d+ bytes of the log, and one commit takes at most 16318464$/,
};

async function openStore(t: Test): Promise<LmdbStore> {
  const store = await openLmdbStore({ path: tempFolder(t), minFreeBytes: 0 });
  t.teardown(() => store.close());
  return store;
}

const put = (store: LmdbStore, key: string, value: string): Promise<void> =>
  store.transact((tx) => Promise.resolve(tx.put('p', key, value)));

await t.test(
  'a transaction that is too large for a commit is refused alone, whatever else is in its group',
  async (t) => {
    const store = await openStore(t);
    const outcomes = await Promise.allSettled([
      put(store, 'before', 'x'),
      put(store, 'large', 'x'.repeat(LARGEST)),
      put(store, 'after', 'x'),
      store.transact((tx) => {
        tx.update('p', 'counter', (current) => String(Number(current ?? 0) + 1));
        tx.emit('stream', (seq) => `event ${seq}`);
        return Promise.resolve();
      }),
    ]);
    t.strictSame(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    );
    t.match(outcomes[1], { reason: tooLarge });
    t.strictSame(
      (await store.range('p')).map(({ key }) => key),
      ['after', 'before', 'counter'],
    );
    t.strictSame(await store.events('stream', 0, 10), [{ seq: 1, text: 'event 1' }]);
  },
);

await t.test('transactions that fit a commit each, but not together, are committed one after another', async (t) => {
  const store = await openStore(t);
  const lengths = [3_900_000, LARGEST - 100_000, 10, LARGEST - 100_000, 10];
  await Promise.all(lengths.map((length, i) => put(store, `key${i}`, 'x'.repeat(length))));
  t.strictSame(
    (await store.range('p')).map(({ value }) => value.length),
    lengths,
  );
});

await t.test('the size of a commit is that of its UTF-8, of keys and of events', async (t) => {
  const store = await openStore(t);
  await t.resolves(put(store, 'ascii', 'x'.repeat(LARGEST - 200)));
  await t.rejects(put(store, 'ascii', 'x'.repeat(LARGEST)), tooLarge);
  await t.resolves(put(store, 'three-bytes', '€'.repeat(LARGEST / 3 - 100)));
  await t.rejects(put(store, 'three-bytes', '€'.repeat(LARGEST / 3)), tooLarge);
  const emit = (length: number): Promise<void> =>
    store.transact((tx) => Promise.resolve(tx.emit('stream', () => 'x'.repeat(length))));
  await t.resolves(emit(LARGEST - 200));
  await t.rejects(emit(LARGEST), tooLarge);
  t.equal(await store.lastSeq('stream'), 1);
  const longKey = 'k'.repeat(1_800);
  await t.rejects(
    store.transact(async (tx) => {
      for (let i = 0; i < LARGEST / 1_800; i++) tx.delete('p', longKey + i);
    }),
    tooLarge,
  );
  t.strictSame(
    (await store.range('p')).map(({ key, value }) => [key, value.length]),
    [
      ['ascii', LARGEST - 200],
      ['three-bytes', LARGEST / 3 - 100],
    ],
  );
});

await t.test('a record that a transaction writes more than once counts once', async (t) => {
  const store = await openStore(t);
  await store.transact(async (tx) => {
    for (let i = 0; i < 3; i++) tx.put('p', 'k', String(i).repeat(LARGEST / 2));
  });
  t.equal((await store.get('p', 'k'))?.slice(0, 3), '222');
});
