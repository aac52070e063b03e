import { readFileSync } from 'node:fs';
import t from 'tap';
import { openLmdbShared } from '../../src/adapters/lmdb/shared.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** How often this process has mapped the data file in a folder. */
function mapsOf(folder: string): number {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n');
  return lines.filter((line) => line.endsWith(` ${folder}/data.mdb`)).length;
}

// What LMDB does when two threads enlarge a map at once is described at `MAP_BYTES`.
t.test(
  'the maps of a store and of shared memory are never enlarged, however much their files grow',
  { skip: process.platform === 'linux' ? false : '/proc is needed' },
  async (t) => {
    const path = tempFolder(t);
    const store = await openLmdbStore({ path: `${path}/store`, minFreeBytes: 0 });
    const shared = openLmdbShared({ path: `${path}/shared` });
    t.teardown(() => Promise.all([store.close(), shared.close()]));
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 20; n++)
        await store.transact(async (tx) => tx.put('p', `${round} ${n}`.replace(' ', '.'), 'x'.repeat(100_000)));
      await store.checkpoint();
      t.equal((await store.range('p')).length, (round + 1) * 20);
      for (let n = 0; n < 200; n++)
        await shared.put({ key: 'k', name: `${round}.${n}`, owner: '', text: 'x'.repeat(5_000) });
      t.equal((await shared.list('k')).length, (round + 1) * 200);
    }
    t.strictSame([`${path}/store`, `${path}/store/log`, `${path}/shared`].map(mapsOf), [1, 1, 1]);
  },
);
