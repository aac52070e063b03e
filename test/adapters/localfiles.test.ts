import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import { LocalStagedBlob } from '../../src/adapters/localfiles/local-staged-blob.ts';
import { currentProcess } from '../../src/lib/process/process-identity.ts';
import { blobsConformance } from '../conformance/blobs.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { noSmallDisk, smallDisk } from '../helpers/small-disk.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('blobs in a folder keep the contract of Blobs', (t) =>
  blobsConformance(t, {
    open: async (t, full = false) => {
      const clock = new ManualClock(0);
      const minFreeBytes = full ? Number.MAX_SAFE_INTEGER : 0;
      const options = { path: join(tempFolder(t), 'files'), minFreeBytes, clock };
      const advance = (ms: number): void => clock.advance(ms);
      return { blobs: new LocalBlobs(options), peer: new LocalBlobs(options), advance };
    },
    noFilling: noSmallDisk,
    filling: async (t) => {
      const disk = smallDisk(t, 4);
      // A memory disk never refuses to flush. Others do, when they allocate space late.
      const handle = await open(disk.path);
      const prototype = Object.getPrototypeOf(handle) as Pick<FileHandle, 'datasync' | 'sync'>;
      await handle.close();
      const { datasync, sync } = prototype;
      const refuse = (): Promise<never> =>
        Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
      const empty = (): void => {
        Object.assign(prototype, { datasync, sync });
        disk.empty();
      };
      t.teardown(empty);
      const fill = (): void => {
        Object.assign(prototype, { datasync: refuse, sync: refuse });
        disk.fill();
      };
      return { blobs: new LocalBlobs({ path: join(disk.path, 'files'), minFreeBytes: 0 }), fill, empty };
    },
  }),
);

t.test('a disk that fills up while a file is written is reported as storage_full', async (t) => {
  const staged = await LocalStagedBlob.create(join(tempFolder(t), 'new', 'x'), async () => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
  await t.rejects(staged.commit(), { code: 'storage_full' });
  await staged.discard();
});

t.test('an empty folder is removed with its last file, and only the owner can read files and folders', async (t) => {
  const path = join(tempFolder(t), 'files');
  const blobs = new LocalBlobs({ path, minFreeBytes: 0 });
  for (const name of ['file_aaaaa1', 'file_aaaaa2', 'file_bbbbb1']) {
    const staged = await blobs.stage('env', name);
    await staged.write(Buffer.from(name));
    await staged.commit();
  }
  t.same(readdirSync(join(path, 'env')), ['file_aaaaa', 'file_bbbbb']);
  await blobs.remove('env', 'file_aaaaa1');
  await blobs.remove('env', 'file_bbbbb1');
  t.same(readdirSync(join(path, 'env')), ['file_aaaaa']);
  for (const place of ['', '.staging', 'env', 'env/file_aaaaa', 'env/file_aaaaa/file_aaaaa2'])
    t.equal(statSync(join(path, place)).mode & 0o077, 0, place);
});

t.test('an environment is removed while processes commit blobs to it without a pause, and none fails', async (t) => {
  const options = { path: join(tempFolder(t), 'files'), minFreeBytes: 0 };
  const writers = [1, 2].map(() => startFixture('blob-writer', options.path));
  t.teardown(() => Promise.all(writers.map(killLines)));
  await until(() => writers.every(({ lines }) => lines.includes('committed')));
  const removers = [new LocalBlobs(options), new LocalBlobs(options)];
  await Promise.all(
    removers.map(async (blobs) => {
      for (let n = 0; n < 200; n++) await blobs.removeAll('env');
    }),
  );
  for (const { child } of writers) t.equal(child.exitCode, null, 'it goes on');
  await Promise.all(writers.map(killLines));
  const [blobs] = removers;
  await blobs?.removeAll('env');
  t.same(readdirSync(options.path), ['.staging']);
});

t.test(
  'what an interrupted removal of an environment left is no environment, and goes with the next sweep',
  async (t) => {
    const options = { path: join(tempFolder(t), 'files'), minFreeBytes: 0 };
    const blobs = new LocalBlobs(options);
    for (const sweep of [() => blobs.sweepStaged(60_000), () => blobs.removeAll('other')]) {
      const left = join(options.path, '.removed-5f3a', 'file_00001');
      mkdirSync(left, { recursive: true });
      writeFileSync(join(left, 'file_00001a'), 'x');
      t.same(await blobs.environments(), []);
      t.equal(await blobs.sweepStaged(0, true), 0, 'nothing was staged');
      t.same(readdirSync(left), ['file_00001a'], 'nothing is removed by a dry run');
      await sweep();
      t.same(readdirSync(options.path), []);
    }
  },
);

t.test('the lease of a process that was killed ends at once, and those of others stay', async (t) => {
  const options = { path: join(tempFolder(t), 'files'), minFreeBytes: 0 };
  const [blobs, peer] = [new LocalBlobs(options), new LocalBlobs(options)];
  const retainer = startFixture('blob-retainer', options.path);
  t.teardown(() => killLines(retainer));
  await until(() => retainer.lines.includes('retained'));
  t.equal(await blobs.isRetained(), true);
  const lease = await blobs.retain();
  await killLines(retainer);
  for (const view of [blobs, peer]) t.equal(await view.isRetained(), true);
  await lease.release();
  for (const view of [blobs, peer]) t.equal(await view.isRetained(), false);
});

t.test(
  'a retention lease ends with its process, or when it was not seen to be touched for five minutes, whatever the wall clock says',
  async (t) => {
    const path = join(tempFolder(t), 'files');
    const clock = new ManualClock(0);
    const blobs = new LocalBlobs({ path, minFreeBytes: 0, clock });
    const leases = join(path, '.holds');
    mkdirSync(leases, { recursive: true });
    const put = (name: string, identity: object, ageMs: number): void => {
      writeFileSync(join(leases, name), JSON.stringify(identity));
      utimesSync(join(leases, name), new Date(), new Date(Date.now() - ageMs));
    };
    put('killed', { ...currentProcess(), startTime: '1' }, 0);
    t.equal(await blobs.isRetained(), false);
    t.same(readdirSync(leases), [], 'it is removed');
    // As after the wall clock was set forward by an hour.
    put('touched', currentProcess(), 3_600_000);
    put('stopped', currentProcess(), 3_600_000);
    put('on another machine', { ...currentProcess(), host: 'elsewhere', boot: 'another' }, 3_600_000);
    t.equal(await blobs.isRetained(), true);
    t.equal(readdirSync(leases).length, 3);
    clock.advance(301_000);
    put('touched', currentProcess(), 3_585_000);
    t.equal(await blobs.isRetained(), true);
    t.same(readdirSync(leases), ['touched'], 'the others have expired');
  },
);
