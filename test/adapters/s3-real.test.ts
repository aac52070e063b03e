import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { openS3Blobs, type S3BlobsOptions } from '../../src/adapters/s3/open.ts';
import { MEGABYTE } from '../../src/lib/bytes.ts';
import { blobsConformance } from '../conformance/blobs.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { putBlob, readBlob } from '../helpers/s3-blobs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const url = process.env['S3_URL'] ?? '';
const skip = url === '' && 'set S3_URL, S3_ENDPOINT, S3_REGION and AWS_… to run this against a store that exists';

const optionsOf = (folder: string): S3BlobsOptions => ({
  url: `${url}/${randomBytes(6).toString('hex')}`,
  endpoint: process.env['S3_ENDPOINT'] ?? '',
  region: process.env['S3_REGION'] ?? '',
  pathStyle: 'auto',
  env: process.env,
  staging: { folder: join(folder, 'staging'), minFreeBytes: 0 },
});

t.test('blobs in a store that exists keep the contract of Blobs', { skip }, (t) =>
  blobsConformance(t, {
    open: async (t, full = false) => {
      const clock = new ManualClock(Date.now());
      const made = optionsOf(tempFolder(t));
      const minFreeBytes = full ? Number.MAX_SAFE_INTEGER : 0;
      const options = { ...made, staging: { ...made.staging, minFreeBytes }, clock };
      const opened = [await openS3Blobs(options), await openS3Blobs(options)] as const;
      t.teardown(() => opened.forEach((blobs) => blobs.close()));
      return { blobs: opened[0], peer: opened[1], advance: (ms) => clock.advance(ms) };
    },
    noFilling: 'a flush and a commit need no space of a disk',
    filling: () => Promise.reject(new Error('not needed')),
  }),
);

t.test(
  'a store that exists takes a blob in parts, ends those that are discarded, and reads ranges',
  { skip },
  async (t) => {
    const blobs = await openS3Blobs(optionsOf(tempFolder(t)));
    t.teardown(() => blobs.close());
    const bytes = randomBytes(25 * MEGABYTE);
    await putBlob(blobs, 'large', bytes);
    t.ok(bytes.equals(await readBlob(blobs, 'large')));
    const reader = await blobs.open('env', 'large');
    t.ok(bytes.subarray(20_000_000, 20_000_100).equals(await reader.read(20_000_000, 100)));
    t.equal((await reader.read(bytes.length, 1)).length, 0);
    await reader.close();
    const discarded = await blobs.stage('env', 'discarded');
    await discarded.write(bytes);
    await discarded.flush();
    t.equal(await blobs.sweepStaged(0, true), 2, 'its file and its upload');
    await discarded.discard();
    t.equal(await blobs.sweepStaged(0, true), 0);
    const swept = await blobs.stage('env', 'swept');
    await swept.write(bytes);
    await swept.flush();
    t.equal(await blobs.sweepStaged(0), 2);
    await t.rejects(swept.commit());
    await swept.discard();
    await blobs.removeAll('env');
    t.same(await blobs.environments(), []);
  },
);
