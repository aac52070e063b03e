import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import t from 'tap';
import { isDiskError, systemErrorOf } from '../../src/lib/errno.ts';
import { diskRefusalOf } from '../../src/model/disk-refusal.ts';

/** An error as lmdb-js throws it. */
const lmdbError = (code: number): Error => Object.assign(new Error('a text of libc'), { code });

await t.test('every error number of a write is named, and those of the disk are refusals of the store', (t) => {
  for (const [name, number] of Object.entries(constants.errno))
    t.match(systemErrorOf(lmdbError(number))?.name, /^E[A-Z0-9]+$/, name);
  for (const name of [
    'EIO',
    'EROFS',
    'EACCES',
    'EPERM',
    'ENXIO',
    'EFBIG',
    'ENODEV',
    'ESTALE',
    'ETIMEDOUT',
    'ENOTCONN',
  ] as const) {
    t.match(diskRefusalOf(lmdbError(constants.errno[name])), {
      code: 'storage_failed',
      message: new RegExp(`\\(${name}\\b`),
      cause: { message: 'a text of libc' },
    });
  }
  for (const name of ['ENOSPC', 'EDQUOT'] as const)
    t.match(diskRefusalOf(lmdbError(constants.errno[name])), { code: 'storage_full' });
  t.end();
});

await t.test('errors of Node.js are named by their number, which it does not always know', (t) => {
  const quota = Object.assign(new Error('Unknown system error -122'), {
    code: 'Unknown system error -122',
    errno: -constants.errno.EDQUOT,
    syscall: 'write',
  });
  t.strictSame(systemErrorOf(quota), { name: 'EDQUOT', meaning: 'disk quota exceeded' });
  const missing = t.throws(() => readFileSync('/missing')) as unknown;
  t.match(systemErrorOf(missing), { name: 'ENOENT' });
  t.end();
});

await t.test('mistakes of the program, limits of the process and what passes are no errors of the disk', (t) => {
  for (const name of ['ENOENT', 'EINVAL', 'EBADF', 'EAGAIN', 'EINTR', 'EBUSY', 'EMFILE'])
    t.notOk(isDiskError({ name, meaning: '' }), name);
  t.equal(diskRefusalOf(lmdbError(constants.errno.ENOENT)), null);
  t.end();
});

await t.test('other errors with a code are not taken for those of the system', (t) => {
  for (const error of [
    AbortSignal.abort().reason as unknown,
    new Error('EIO'),
    Object.assign(new Error(), { code: 'ERR_INVALID_ARG_TYPE' }),
    lmdbError(-30_792),
    'EIO',
    null,
  ]) {
    t.equal(systemErrorOf(error), null);
  }
  t.end();
});
