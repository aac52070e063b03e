import { existsSync, readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { usersOf } from '../../src/domain/records/partitions.ts';
import { collab } from '../helpers/cli.ts';
import { collab as collabInside, collabJson } from '../helpers/command.ts';
import { failingDisk, type FailingDisk, noFailingDisk } from '../helpers/failing-disk.ts';
import { newFolder } from '../helpers/new-folder.ts';

const NEW_USER = {
  avatarUrl: null,
  email: null,
  kind: 'user',
  metadata: {},
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-02T03:04:05.678Z',
  firstSeenAt: null,
  lastSeenAt: null,
};

/** A folder that was made before its disk fails. */
async function madeOn(t: Test, failing: string): Promise<{ disk: FailingDisk; dir: string }> {
  const disk = failingDisk(t, failing);
  const dir = join(disk.folder, 'collab');
  await newFolder(dir);
  return { disk, dir };
}

t.test(
  'commands on a disk that refuses writes name the error and the file, and what to do',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, '');
    const file = join(disk.folder, 'all.ndjson');
    await collabJson(t, ['export', file, '--dir', dir]);
    const commands = [
      ['init', '--dir', join(disk.folder, 'other')],
      ['key', 'create', '--env', 'default', '--kind', 'secret', '--dir', dir],
      ['import', file, '--skip-existing', '--dir', dir],
      ['import', file, '--dir', join(disk.folder, 'imported')],
      ['export', join(disk.folder, 'again.ndjson'), '--dir', dir],
      ['compact', '--dir', dir],
    ];
    // Each of them takes a third of a second, so few are tried with the second error.
    for (const [errno, tried] of [
      ['EDQUOT', commands],
      ['EIO', commands.slice(1, 2)],
    ] as const) {
      disk.refuse(errno);
      for (const command of tried) {
        const { code, stdout, stderr } = await collab(command, { env: disk.env });
        t.match(
          { code, stdout, stderr },
          { code: 1, stdout: '', stderr: new RegExp(`^collab: .*${errno}.*\\n  → `) },
          command.join(' '),
        );
        t.match(stderr, disk.folder);
        t.notMatch(stderr, /bug in Collab|Unknown system error|^ +at |restore/m);
      }
    }
    const { stdout } = await collab(['doctor', '--dir', dir], { env: disk.env });
    t.match(stdout, /fail {2}store .*EIO/);
    t.notMatch(stdout, /damaged|restore/);
  },
);

t.test(
  'a backup and a restore whose disk fails midway name error and folder, and leave nothing',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'out');
    const [out, backup] = [join(disk.folder, 'out'), join(disk.folder, 'backup')];
    await collabJson(t, ['backup', backup, '--dir', dir]);
    for (const [command, call, errno, skip, said] of [
      [['backup', out, '--dir', dir], 'write', 'ENOSPC', 0, 'store cannot be copied to OUT.*: No space left on device'],
      [['restore', backup, '--yes', '--dir', out], 'fdatasync', 'EIO', 2, 'OUT.* cannot be written: .*EIO'],
    ] as const) {
      disk.failCalls({ id: skip, call, errno, skip, times: 0 });
      const { code, stdout, stderr } = await collab(command, { env: disk.env });
      disk.heal();
      t.match(
        { code, stdout, stderr },
        { code: 1, stdout: '', stderr: new RegExp(`^collab: .*${said.replace('OUT', out)}.*\\n {2}→ `) },
        command.join(' '),
      );
      t.notMatch(stderr, /bug in Collab|^ +at /m);
      t.notOk(existsSync(out));
    }
  },
);

t.test(
  'a call that fails midway is reported once, in words, with the file, and the command succeeds when it is repeated',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'collab');
    const data = join(dir, 'data');
    const create = ['key', 'create', '--env', 'default', '--kind', 'secret'];
    const reported = [
      [create, 'fdatasync', 'ENOMEM', 'reported an error: not enough memory .ENOMEM.'],
      [['compact'], 'pwrite', 'EDQUOT', `${data}/store/compacting/disk-probe cannot be written: .*EDQUOT`],
      [['compact'], 'write', 'ESTALE', `ESTALE: stale file handle, write '${data}/collab.lock`],
    ] as const;
    for (const [id, [command, call, errno, said]] of reported.entries()) {
      disk.failCalls({ id, call, errno, skip: 0, times: 0 });
      const { code, stdout, stderr } = await collab([...command, '--dir', dir], { env: disk.env });
      disk.heal();
      t.match(
        { code, stdout, stderr },
        { code: 1, stdout: '', stderr: new RegExp(`^collab: .*${said}.*\\n {2}→ `) },
        command.join(' '),
      );
      t.notMatch(stderr, /bug in Collab|Unknown system error|unknown error|^ +at /m);
    }
    for (const command of [create, ['compact']]) t.equal((await collab([...command, '--dir', dir])).code, 0);
  },
);

t.test(
  'a large import whose disk becomes full midway makes nothing visible, and succeeds once there is space',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'imported/data');
    const store = await openLmdbStore({ path: join(dir, 'data/store'), minFreeBytes: 0 });
    const [environment = { key: '' }] = await store.range('envs');
    await store.transact(async (tx) => {
      for (let i = 0; i < 3_000; i++)
        tx.put(
          usersOf(environment.key),
          `u${i}`,
          JSON.stringify({ id: `u${i}`, userId: `u${i}`, name: 'x'.repeat(200), ...NEW_USER }),
        );
    });
    await store.close();
    const file = join(disk.folder, 'large.ndjson');
    await collabJson(t, ['export', file, '--dir', dir]);
    const to = join(disk.folder, 'imported');
    await newFolder(to);
    await collabJson(t, ['env', 'delete', 'default', '--yes', '--dir', to]);
    // Not of a page: a large number in lmdb-js's message about that ends the process (disk-gate.ts).
    disk.failCalls({ id: 1, call: 'fdatasync', errno: 'ENOSPC', skip: 3, times: 0 });
    const { code, stdout, stderr } = await collab(['import', file, '--dir', to], { env: disk.env });
    t.ok(disk.failedCalls() > 0);
    disk.heal();
    t.match({ code, stdout, stderr }, { code: 1, stdout: '', stderr: /^collab: .*ENOSPC.*\n {2}→ /m });
    t.notMatch(stderr, /bug in Collab|^ +at /m);
    t.strictSame(await collabJson(t, ['env', 'list', '--dir', to]), { items: [] });
    await collabJson(t, ['import', file, '--dir', to]);
    t.match(await collabJson(t, ['env', 'show', 'default', '--dir', to]), { slug: 'default' });
    const imported = await openLmdbStore({ path: join(to, 'data/store'), minFreeBytes: 0 });
    t.equal((await imported.range(usersOf(environment.key))).length, 3_000);
    await imported.close();
  },
);

t.test(
  'an export whose last write fails is not reported as done, and leaves no file',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'out');
    const out = `${disk.folder}/out`;
    const before = readdirSync(disk.folder);
    disk.failOnce('write');
    t.match(await collab(['export', out, '--dir', dir], { env: { ...disk.env, EIO_FILE: disk.folder } }), {
      code: 1,
      stdout: '',
      stderr: /EIO/,
    });
    t.ok(disk.hasFailed());
    t.notOk(existsSync(out));
    t.strictSame(readdirSync(disk.folder), before);
  },
);

t.test(
  'a file that LMDB could not open or read is named, and not taken for damage',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'collab/data/store/opening/data.mdb');
    disk.failOnce('read');
    t.match(await collab(['env', 'list', '--dir', dir], { env: disk.env }), {
      code: 1,
      stderr: /store\/opening\/data\.mdb cannot be read: .*EIO/,
    });
    t.ok(disk.hasFailed());
  },
);

t.test(
  'a command that an error of the disk ends by a signal says so, and doctor calls nothing damaged that can be read',
  { skip: noFailingDisk },
  async (t) => {
    const { disk, dir } = await madeOn(t, 'collab/data/store');
    // The first reads check the files, a later one is that of LMDB itself.
    let ended;
    for (let skip = 8; ended?.code !== null && skip < 12; skip++) {
      disk.failCalls({ id: skip, call: 'pread', errno: 'EIO', skip, times: 1 });
      ended = await collab(['env', 'list', '--dir', dir], { env: disk.env });
    }
    t.match(ended, { code: null, stdout: '', stderr: /^collab: A signal ended this command .*\n {2}→ .*dmesg/ });
    t.notMatch(ended?.stderr, /damaged|restore/);
    disk.heal();
    t.match(await collabInside(['doctor', '--dir', dir], { inside: true }), { stdout: /ok +store/ });
    truncateSync(join(dir, 'data/store/data.mdb'), 8_192);
    t.match(await collab(['env', 'list', '--json', '--dir', dir]), {
      code: null,
      stderr: /^{"error":{"code":"ended_by_signal"/,
    });
    t.match(await collab(['doctor', '--dir', dir]), {
      stdout: /fail +store .*damaged: the end of .*data\.mdb is missing; .*SIGBUS/,
    });
  },
);
