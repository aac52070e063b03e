import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collabJson } from '../helpers/cli.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test(
  'a command that ends does not destroy the mutexes with which another one may be opening the store',
  async (t) => {
    const dir = join(tempFolder(t), 'server');
    await newFolder(dir);
    await collabJson(t, ['env', 'list', '--dir', dir]);
    for (const folder of ['opening', 'log/opening']) {
      const mutexes = readFileSync(join(dir, 'data/store', folder, 'lock.mdb')).subarray(0, 128);
      // The kind of a mutex, of which pthread_mutex_destroy of glibc makes -1.
      t.notOk(mutexes.includes(Buffer.alloc(4, 0xff)), folder);
    }
  },
);
