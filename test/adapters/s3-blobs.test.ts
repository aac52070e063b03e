import { join } from 'node:path';
import t from 'tap';
import { type S3BlobsOptions, openS3Blobs } from '../../src/adapters/s3/open.ts';
import { blobsConformance } from '../conformance/blobs.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { S3Server } from '../doubles/s3/server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('blobs in an object store keep the contract of Blobs', (t) =>
  blobsConformance(t, {
    open: async (t, full = false) => {
      const server = await S3Server.start(t);
      const clock = new ManualClock(Date.now());
      const minFreeBytes = full ? Number.MAX_SAFE_INTEGER : 0;
      const staging = { folder: join(tempFolder(t), 'staging'), minFreeBytes };
      const options: S3BlobsOptions = { ...server.options, staging, clock };
      const opened = [await openS3Blobs(options), await openS3Blobs(options)] as const;
      t.teardown(() => opened.forEach((blobs) => blobs.close()));
      return { blobs: opened[0], peer: opened[1], advance: (ms) => clock.advance(ms) };
    },
    noFilling: 'a flush and a commit need no space of a disk; the test of a store without space is below',
    filling: () => Promise.reject(new Error('not needed')),
  }),
);
