import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { type Disk, storeConformance } from '../conformance/store.ts';
import type { Outside } from '../conformance/store/cases.ts';
import { type Folder, type LocalStores, storeOperationsConformance } from '../conformance/store-operations.ts';
import { until } from '../helpers/cluster.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** Opens two stores in a new folder. */
async function openPair(t: Test, disk: Disk): Promise<LocalStores & { path: string; close(): Promise<void> }> {
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
  const outside: Outside = {
    commit: (...record) => execFileSync(process.execPath, [...fixtureArgs('store-commit'), options.path, ...record]),
  };
  const close = async (): Promise<void> => {
    await store.close();
    await peer.close();
  };
  return { path: options.path, store, peer, operations: store, peerOperations: peer, outside, close };
}

/** What the disk and another process do to the store in a folder. */
function folderOf(path: string): Folder {
  return {
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

await storeConformance(t, openPair);

await storeOperationsConformance(t, async (t) => {
  const pair = await openPair(t, 'works');
  return { ...pair, ...folderOf(pair.path) };
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

t.test('a large commit is copied once by who reads it, also in a process that has read a large value', async (t) => {
  const options = { path: tempFolder(t), minFreeBytes: 0 };
  const [store, peer] = [await openLmdbStore(options), await openLmdbStore(options)];
  t.teardown(async () => {
    await store.close();
    await peer.close();
  });
  const text = 'x'.repeat(2_000_000);
  await store.transact((tx) => Promise.resolve(tx.put('p', 'first', text)));
  await store.checkpoint();
  t.equal((await peer.get('p', 'first'))?.length, text.length);
  await store.transact((tx) => Promise.resolve(tx.put('p', 'second', text)));
  const { copy } = Buffer.prototype;
  let copied = 0;
  // lmdb-js reads into one buffer whose `length` it sets: Node.js 24 copies the whole buffer unless it is told an end.
  Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<typeof copy>): number {
    const bytes = copy.apply(this, args);
    copied += bytes;
    return bytes;
  };
  try {
    t.equal((await peer.get('p', 'second'))?.length, text.length);
  } finally {
    Buffer.prototype.copy = copy;
  }
  t.ok(copied < 2 * text.length, `${copied} bytes were copied`);
});
