import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { checkAccess } from '../../src/adapters/lmdb/env/file-check.ts';
import { readStoreFiles } from '../../src/adapters/lmdb/file-faults.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a file that is no database is refused with a message, and left unchanged', async (t) => {
  const damages: Readonly<Record<string, (file: string) => void>> = {
    'other content': (file) => writeFileSync(file, 'this is no database'.repeat(1000)),
    'zeros, as a power cut may leave': (file) => writeFileSync(file, Buffer.alloc(65_536)),
    'cut off in its first page': (file) => truncateSync(file, 20),
    'a damaged first page': (file) => {
      const bytes = readFileSync(file);
      bytes.fill(0xff, 0, 128);
      writeFileSync(file, bytes);
    },
  };
  for (const [name, damage] of Object.entries(damages)) {
    const path = tempFolder(t);
    await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
    const file = join(path, 'data.mdb');
    damage(file);
    const before = readFileSync(file);
    await t.rejects(
      openLmdbStore({ path, minFreeBytes: 0 }),
      { message: new RegExp(`^${file} is damaged: .*restore a backup`) },
      name,
    );
    t.strictSame(readFileSync(file), before);
  }
});

t.test('a lock file that comes and goes, as one that a compaction removes, is no error of the disk', async (t) => {
  const path = tempFolder(t);
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
  const lock = join(path, 'lock.mdb');
  const toggles = `const { rmSync, writeFileSync } = require('node:fs');
    for (;;) { writeFileSync(${JSON.stringify(lock)}, 'x'); rmSync(${JSON.stringify(lock)}); }`;
  const other = new Worker(toggles, { eval: true });
  t.teardown(() => other.terminate());
  await once(other, 'online');
  for (let i = 0; i < 2_000; i++) checkAccess(path);
  await other.terminate();
});

t.test('a log that is replaced and removed while the files of a store are read is left out', async (t) => {
  const path = tempFolder(t);
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
  const reading = readStoreFiles(path);
  rmSync(join(path, 'log'), { recursive: true });
  t.equal(await reading, null);
});

t.test('a database is created in an empty file', async (t) => {
  const path = join(tempFolder(t), 'store');
  mkdirSync(path);
  writeFileSync(join(path, 'data.mdb'), '');
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  t.equal(await store.lastSeq('env_none'), 0);
  await store.close();
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
});

t.test(
  'what a power cut has left of the files of opening locks, which hold nothing, is repaired by whoever opens the store',
  async (t) => {
    const whole = tempFolder(t);
    const store = await openLmdbStore({ path: whole, minFreeBytes: 0 });
    await store.transact(async (tx) => tx.put('p', 'k', '"v"'));
    await store.close();
    const { length } = readFileSync(join(whole, 'opening', 'data.mdb'));
    const damages: Readonly<Record<string, (file: string) => void>> = {
      'one byte': (file) => truncateSync(file, 1),
      'the first page': (file) => truncateSync(file, length / 2),
      'all but the end': (file) => truncateSync(file, length - 1),
      zeros: (file) => writeFileSync(file, Buffer.alloc(length)),
      'zeros for the first page': (file) => writeFileSync(file, readFileSync(file).fill(0, 0, length / 2)),
      'zeros for the second page': (file) => writeFileSync(file, readFileSync(file).fill(0, length / 2)),
      nothing: (file) => truncateSync(file, 0),
    };
    for (const [name, damage] of Object.entries(damages)) {
      const path = tempFolder(t);
      for (const folder of ['.', 'opening', 'log', 'log/opening'])
        cpSync(join(whole, folder, 'data.mdb'), join(path, folder, 'data.mdb'));
      for (const folder of ['opening', 'log/opening']) damage(join(path, folder, 'data.mdb'));
      // Without the repair, LMDB ends the process that opens it.
      const openers = name === 'zeros' ? ['a', 'b'].map((opener) => startFixture('store-writer', path, opener)) : [];
      t.teardown(() => Promise.all(openers.map(killLines)));
      await until(() => openers.every(({ lines, child }) => lines.length > 0 || child.signalCode !== null));
      t.same(
        openers.map(({ child }) => child.signalCode),
        openers.map(() => null),
        'two processes repair it at once',
      );
      await Promise.all(openers.map(killLines));
      const opened = await openLmdbStore({ path, minFreeBytes: 0 });
      t.equal(await opened.get('p', 'k'), '"v"', `${name} is left`);
      t.same(
        readdirSync(join(path, 'opening')).filter((entry) => entry.startsWith('new-')),
        [],
      );
      await opened.close();
    }
  },
);
