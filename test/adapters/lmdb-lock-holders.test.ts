import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import t from 'tap';
import { findLockHolders, writersMutexOffset } from '../../src/adapters/lmdb/env/lock-holders.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { syncTree } from '../../src/lib/files/durable-files.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const skip = process.platform === 'linux' ? false : 'needs /proc';

t.test(
  'the holder of a writers’ lock is found where the lock file of this machine says that the lock is',
  { skip },
  async (t) => {
    const path = tempFolder(t);
    const lmdbEnv = open({ path, noSubdir: false });
    t.strictSame(
      lmdbEnv.transactionSync(() => findLockHolders(path)),
      [{ pid: process.pid, file: join(path, 'lock.mdb') }],
    );
    t.strictSame(findLockHolders(path), []);
    await lmdbEnv.close();
  },
);

t.test('flushing a store keeps the locks that this process has on its files', { skip }, async (t) => {
  const path = tempFolder(t);
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  await store.transact(async (tx) => tx.put('p', 'k', 'v'));
  const own = (): string[] =>
    ['lock.mdb', 'opening/lock.mdb', 'log/lock.mdb', 'log/opening/lock.mdb'].filter((file) => {
      const { ino } = statSync(join(path, file));
      const lines = readFileSync('/proc/locks', 'utf8').split('\n');
      return lines.some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `));
    });
  const before = own();
  t.equal(before.length, 4);
  await syncTree(path);
  t.strictSame(own(), before);
  await store.close();
});

// mti_format as mdb.c makes it: bits 12 on have the layout, in which a type of lock counts 270, and each 4 bytes of a
// mutex five types.
const formatOf = (mutexBytes: number, alignment: number): number =>
  2 + (18 * 2 + 6 + 270 * (10 + alignment + 5 * (mutexBytes / 4)) + 2 ** 15 + 2 ** 17) * 2 ** 12;

t.test('the writers’ lock is looked for where the C library of x64, or of arm64, has it', async (t) => {
  t.equal(writersMutexOffset(formatOf(40, 3)), 64, 'glibc on x64, musl');
  t.equal(writersMutexOffset(formatOf(48, 3)), 128, 'glibc on arm64');
  t.equal(writersMutexOffset(2 + 270 * 8 * 2 ** 12), null, 'SysV semaphores');
});

t.test('unknown locks are reported, and no process is taken for their holder', { skip }, async (t) => {
  const path = tempFolder(t);
  const lock = Buffer.alloc(256, 1);
  lock.writeUInt32LE(0xbeefc0de, 0);
  lock.writeUInt32LE(2, 4);
  writeFileSync(join(path, 'lock.mdb'), lock);
  const warning = once(process, 'warning');
  t.strictSame(findLockHolders(path), []);
  t.match((await warning)[0], { message: /unknown way/ });
});
