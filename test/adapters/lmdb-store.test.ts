import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { storeConformance } from '../conformance/store.ts';
import type { Outside } from '../conformance/store/cases.ts';
import { until } from '../helpers/cluster.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** What happens to the store in a folder from outside. */
function outsideOf(path: string): Outside {
  return {
    commit: (...record) => execFileSync(process.execPath, [...fixtureArgs('store-commit'), path, ...record]),
    damage: (text) => {
      const file = join(path, 'data.mdb');
      const bytes = readFileSync(file);
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1))
        bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      // In place: the open stores see it.
      writeFileSync(file, bytes, { flag: 'r+' });
    },
    holdSnapshot: async (t) => {
      const holder = startFixture('snapshot-holder', path, 'tree');
      t.teardown(() => killLines(holder));
      await until(() => holder.lines.includes('held'));
      return holder.child;
    },
  };
}

await storeConformance(t, async (t, disk) => {
  const options = { path: tempFolder(t), minFreeBytes: disk === 'full' ? Number.MAX_SAFE_INTEGER : 0 };
  const open = async (): Promise<LmdbStore> => {
    const database = await openDatabase(options.path);
    // As lmdb-js reports it.
    if (disk === 'fails')
      database.log.transaction = () =>
        Promise.reject(Object.assign(new Error('Input/output error'), { code: constants.errno.EIO }));
    return new LmdbStore(database, options);
  };
  const [store, peer] = [await open(), await open()];
  return {
    store,
    peer,
    outside: outsideOf(options.path),
    close: async () => {
      await store.close();
      await peer.close();
    },
  };
});

// The port lets an adapter always return undefined.
await t.test('peek returns the value while it is valid', async (t) => {
  const path = t.testdir();
  const [store, peer] = [
    await openLmdbStore({ path, minFreeBytes: 0 }),
    await openLmdbStore({ path, minFreeBytes: 0 }),
  ];
  t.teardown(() => Promise.all([store.close(), peer.close()]));
  const compute = async (): Promise<string> => (await store.get('p', 'k')) ?? 'none';
  await store.cached('value', ['p'], compute);
  t.equal(store.peek('value'), 'none');
  await peer.transact(async (tx) => tx.put('other', 'k', 'x'));
  t.equal(store.peek('value'), 'none');
  await peer.transact(async (tx) => tx.put('p', 'k', '1'));
  t.equal(store.peek('value'), undefined);
  await store.cached('value', ['p'], compute);
  t.equal(store.peek('value'), '1');
});

await t.test(
  'a value that was read from the base table is replaced by later writes, also once these are in the base table',
  async (t) => {
    const path = t.testdir();
    const [store, peer] = [
      await openLmdbStore({ path, minFreeBytes: 0 }),
      await openLmdbStore({ path, minFreeBytes: 0 }),
    ];
    t.teardown(() => Promise.all([store.close(), peer.close()]));
    let writes = 0;
    const moveToBaseTable = async (): Promise<void> => {
      // A checkpoint drops from memory what the one before it wrote, and does nothing without a new commit.
      for (let i = 0; i < 3; i++) {
        await peer.transact(async (tx) => tx.put('other', 'k', String(writes++)));
        await peer.checkpoint();
        store.poll();
      }
    };
    const read = async (): Promise<(string | undefined)[]> => [
      await store.get('p', 'changed'),
      await store.get('p', 'deleted'),
      await store.get('p', 'created'),
    ];
    await peer.transact(async (tx) => {
      tx.put('p', 'changed', 'old');
      tx.put('p', 'deleted', 'old');
    });
    await moveToBaseTable();
    t.strictSame(await read(), ['old', 'old', undefined]);
    await peer.transact(async (tx) => {
      tx.put('p', 'changed', 'new');
      tx.delete('p', 'deleted');
      tx.put('p', 'created', 'new');
    });
    t.strictSame(await read(), ['new', undefined, 'new']);
    await moveToBaseTable();
    t.strictSame(await read(), ['new', undefined, 'new']);
  },
);
