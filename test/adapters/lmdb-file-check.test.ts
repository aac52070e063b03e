import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
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
    await t.rejects(openLmdbStore({ path, minFreeBytes: 0 }), { message: new RegExp(`^${file} is damaged: .*restore a backup`) }, name);
    t.strictSame(readFileSync(file), before);
  }
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
