import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import t, { type Test } from 'tap';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { writersMutexOffset } from '../../src/adapters/lmdb/env/lock-holders.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { glibcVersion } from '../../src/lib/process/glibc-version.ts';
import { threadsInLocks, WAKE_SIGNAL } from '../../src/lib/process/lost-wake-ups.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, type LineProcess, startFixture } from '../helpers/line-process.ts';

const skip = process.platform !== 'linux' || glibcVersion() === null ? 'needs the mutexes of glibc' : false;

/**
 * The highest byte of the word of a mutex, in which only FUTEX_WAITERS is set: somebody waits, so whoever releases the
 * mutex must wake.
 */
const WAITERS_BYTE = 3;

/**
 * Waits until a process waits for the writers’ lock of the LMDB environment in `folder`, which this process must hold,
 * and takes the mark away that it does. So the release wakes nobody, as after a waiting process was killed at the wrong
 * moment.
 */
function loseWakeUp(folder: string, { child }: LineProcess): void {
  const file = openSync(join(folder, 'lock.mdb'), 'r+');
  const format = Buffer.alloc(4);
  readSync(file, format, 0, 4, 4);
  const at = (writersMutexOffset(format.readUInt32LE()) ?? 0) + WAITERS_BYTE;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (threadsInLocks(child.pid ?? 0).length === 0) Atomics.wait(pause, 0, 0, 1);
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  if (byte[0] !== 0x80) throw new Error(`the word of the mutex ends with ${byte.toString('hex')}`);
  writeSync(file, Buffer.alloc(1), 0, 1, at);
  closeSync(file);
}

function ended(t: Test, helper: LineProcess): LineProcess {
  t.teardown(() => killLines(helper));
  return helper;
}

t.test('a commit goes on although the release of the lock that it waits for has woken nobody', { skip }, async (t) => {
  const path = t.testdir();
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
  const writer = ended(t, startFixture('store-writer', path, 'a'));
  await until(() => writer.lines.length > 0);
  const database = await openDatabase(path);
  database.log.transactionSync(() => loseWakeUp(join(path, 'log'), writer));
  const before = writer.lines.length;
  await until(() => writer.lines.length > before + 100);
  await killLines(writer);
  await Promise.all([database.log.close(), database.root.close()]);
});

t.test('a process that waits for a lock with its main thread goes on when it is woken', { skip }, async (t) => {
  const path = t.testdir();
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
  const folder = join(path, 'log/opening');
  const lock = open({ path: folder, noSubdir: false, maxReaders: 1024, overlappingSync: false });
  let opening: LineProcess | undefined;
  lock.transactionSync(() => {
    opening = ended(t, startFixture('opening-holder', join(path, 'log'), 'exclusive'));
    loseWakeUp(folder, opening);
  });
  await until(() => {
    opening?.child.kill(WAKE_SIGNAL);
    return opening?.lines.includes('held') === true;
  });
  await lock.close();
});
