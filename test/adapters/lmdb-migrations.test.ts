import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { open } from 'lmdb';
import t, { type Test } from 'tap';
import { inspectStore, renewEpoch } from '../../src/adapters/lmdb/backup.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/**
 * A store of format 1: 50 records and events, of which the first 20 are in the base table, then a long text, and the
 * first record deleted.
 */
function folderOfFormat1(t: Test): string {
  const path = tempFolder(t);
  writeFileSync(join(path, 'data.mdb'), gunzipSync(readFileSync('test/fixtures/store-format-1.mdb.gz')));
  return path;
}

/** The same in format 2, which had the log in an environment of its own. */
function folderOfFormat2(t: Test): string {
  const path = tempFolder(t);
  mkdirSync(join(path, 'log'));
  writeFileSync(join(path, 'data.mdb'), gunzipSync(readFileSync('test/fixtures/store-format-2.mdb.gz')));
  writeFileSync(join(path, 'log', 'data.mdb'), gunzipSync(readFileSync('test/fixtures/store-format-2-log.mdb.gz')));
  return path;
}

/** The same in format 3, whose base table, with the first 40 of these, has no checksums. */
function folderOfFormat3(t: Test): string {
  const path = tempFolder(t);
  mkdirSync(join(path, 'log'));
  writeFileSync(join(path, 'data.mdb'), gunzipSync(readFileSync('test/fixtures/store-format-3.mdb.gz')));
  writeFileSync(join(path, 'log', 'data.mdb'), gunzipSync(readFileSync('test/fixtures/store-format-3-log.mdb.gz')));
  return path;
}

const folders = [
  [1, folderOfFormat1],
  [2, folderOfFormat2],
  [3, folderOfFormat3],
] as const;

async function verify(t: Test, store: LmdbStore): Promise<void> {
  const records = await store.range('p/folded');
  t.same(new Set(records.map(({ value }) => value)), new Set(Array.from({ length: 49 }, (_, i) => `"${i + 2}"`)));
  t.equal(await store.get('totals', 'all'), '50');
  t.equal((await store.get('p/large', 'text'))?.length, 5_002);
  const events = await store.events('env_1', 0, 100);
  t.same(
    events,
    Array.from({ length: 50 }, (_, i) => ({ seq: i + 1, text: `{"seq":${i + 1},"n":${i + 1}}` })),
  );
}

for (const [format, folderOf] of folders) {
  t.test(`a store of format ${format} is migrated with all its content and takes writes`, async (t) => {
    const path = folderOf(t);
    const stores = await Promise.all([
      openLmdbStore({ path, minFreeBytes: 0 }),
      openLmdbStore({ path, minFreeBytes: 0 }),
    ]);
    for (const store of stores) await verify(t, store);
    await stores[0].checkpoint();
    for (const store of stores) await verify(t, store);
    await stores[0].transact(async (tx) => tx.emit('env_1', (seq) => `{"seq":${seq}}`));
    t.equal(await stores[1].lastSeq('env_1'), 51);
    for (const store of stores) await store.close();
    const again = await openLmdbStore({ path, minFreeBytes: 0 });
    t.equal(await again.lastSeq('env_1'), 51);
    t.equal(again.epoch, stores[0].epoch);
    await again.close();
    if (format < 3) t.notOk(existsSync(join(path, 'log')), 'the log of the older format is gone');
  });

  t.test(`a copy of format ${format} can be restored`, async (t) => {
    const path = folderOf(t);
    const epoch = await renewEpoch(path);
    t.match(await inspectStore(path), { epoch, format: 4, records: 51, events: 50 });
  });
}

t.test('the records of a store of format 3 get checksums in steps, during maintenance', async (t) => {
  const path = folderOfFormat3(t);
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  const marked = (): number => readFileSync(join(path, 'data.mdb')).toString('latin1').split('\xff').length;
  await verify(t, store);
  await store.maintain();
  await verify(t, store);
  t.ok(marked() > 40, 'every record was written again');
  await store.close();

  const file = join(path, 'data.mdb');
  const bytes = readFileSync(file);
  // The text of the 23rd record, also in free pages.
  for (let at = bytes.indexOf('p/folded k023'); at >= 0; at = bytes.indexOf('p/folded k023', at + 1))
    bytes.write('"99"', bytes.indexOf('"23"', at));
  writeFileSync(file, bytes);
  const damaged = await openLmdbStore({ path, minFreeBytes: 0 });
  await t.rejects(async () => damaged.get('p/folded', 'k023'), {
    name: 'DataError',
    message: /the record p\/folded k023 is corrupted \(checksum mismatch\)/,
  });
  const faults: object[] = [];
  for await (const fault of damaged.faults()) faults.push(fault);
  t.same(faults, [{ name: 'base table, p/folded k023', fault: 'is corrupted' }]);
  await damaged.close();
});

t.test(
  'after SIGKILL between the steps of a migration from format 3, every record is there and gets its checksum',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = folderOfFormat3(t);
    const records = 10_000 * CRASH_FACTOR;
    const key = (i: number): string => `many k${String(i).padStart(6, '0')}`;
    const plain = open({ path, noSubdir: false, maxReaders: 1024, maxDbs: 8, overlappingSync: false });
    const table = plain.openDB<string, string>('tree', { encoding: 'string' });
    plain.transactionSync(() => {
      for (let i = 0; i < records; i++) void table.put(key(i), `"value ${i}"`);
    });
    await plain.close();

    const isDone = async (): Promise<boolean> => {
      const root = open({ path, noSubdir: false, maxReaders: 1024, maxDbs: 8, overlappingSync: false });
      const unchecked = root.openDB<string, string>('meta', { encoding: 'string' }).get('unchecked');
      await root.close();
      return unchecked === undefined;
    };
    let kills = 0;
    // Each process does a step or two; the next step is under way when it is killed.
    while (kills === 0 || !(await isDone())) {
      const maintainer = startFixture('store-maintainer', path);
      await until(() => maintainer.lines.length > kills % 2, 60_000);
      await killLines(maintainer);
      kills++;
    }
    t.ok(kills > 0, `killed ${kills} times`);

    const store = await openLmdbStore({ path, minFreeBytes: 0 });
    await verify(t, store);
    const values = (await store.range('many')).map(({ value }) => value);
    t.equal(values.length, records);
    t.equal(values.filter((value, i) => value !== `"value ${i}"`).length, 0, 'every record has its value');
    const faults: object[] = [];
    for await (const fault of store.faults()) faults.push(fault);
    t.same(faults, []);
    await store.close();
    const root = open({ path, noSubdir: false, maxReaders: 1024, maxDbs: 8, overlappingSync: false });
    const stored = root.openDB<Buffer, string>('tree', { encoding: 'binary' });
    t.equal([...stored.getRange()].filter(({ value }) => value[0] !== 0xff).length, 0, 'every record has a checksum');
    await root.close();
  },
);
