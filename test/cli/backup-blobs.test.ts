import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { copyFiles, lostFiles } from '../../src/cli/backup/backup-files.ts';
import { blobAt } from '../../src/cli/backup/backup-folder.ts';
import { fileToBlob } from '../../src/cli/backup/copy-blob.ts';
import { whileFilesAreKept } from '../../src/cli/backup/kept-files.ts';
import { checkFiles } from '../../src/domain/files/file-sweep.ts';
import { RecordedFiles } from '../../src/domain/files/recorded-files.ts';
import { beginUpload } from '../../src/domain/files/uploads.ts';
import { ENVIRONMENTS, filesOf } from '../../src/domain/records/partitions.ts';
import { RETENTION_TERM_MS } from '../../src/ports/blobs.ts';
import { MemoryBlobs, MemoryBucket } from '../doubles/memory-blobs.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { createWorld } from '../domain/world.ts';
import { until } from '../helpers/cluster.ts';
import { durationFile } from '../fixtures/durations.ts';
import { picture, wav } from '../fixtures/media.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const progress = { update: () => undefined };

t.test('uploads are inspected, backed up, restored and checked without a path to any blob', async (t) => {
  const { ctx: base, ann, environment } = await createWorld(t);
  const ctx = { ...base, blobs: new MemoryBlobs(), media: new LocalMedia() };
  const upload = async (filename: string, contentType: string, content: Buffer): Promise<object> => {
    const received = await beginUpload(
      ctx,
      ann,
      { uploads: { megapixelsPerMinute: 100 } },
      { filename, contentType, isDeclared: true, minBytes: 0 },
    );
    await received.write(content.subarray(0, 100));
    await received.write(content.subarray(100));
    return received.finish();
  };
  t.match(await upload('a.png', 'image/png', await picture(30, 20).png().toBuffer()), { width: 30, height: 20 });
  t.match(await upload('b.jpg', 'image/jpeg', await picture(30, 20).jpeg().toBuffer()), { width: 30, height: 20 });
  t.match(await upload('c.wav', 'audio/wav', wav(1.5)), { durationMs: 1500 });
  t.match(await upload('d.mp3', 'audio/mpeg', durationFile('cbr.mp3').bytes), { durationMs: Number });

  const recorded = new RecordedFiles();
  recorded.add(ENVIRONMENTS, environment.id, '{}');
  for (const { key, value } of await ctx.store.range(filesOf(environment.id)))
    recorded.add(filesOf(environment.id), key, value);
  const to = tempFolder(t);
  const { files, sums } = await copyFiles(ctx.blobs, to, recorded, progress, new AbortController().signal);
  t.match(files, { count: 4, missing: [], damaged: [] });
  t.equal(
    readdirSync(join(to, 'files'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length,
    4,
  );

  const restored = { ...ctx, blobs: new MemoryBlobs() };
  for (const [path, sha256] of sums) {
    const [environmentId, name] = blobAt(path) ?? ['', ''];
    t.equal(
      await fileToBlob(
        join(to, path),
        createHash('sha256').update('other').digest('hex'),
        restored.blobs,
        environmentId,
        name,
      ),
      null,
      'not what was backed up',
    );
    t.ok(await fileToBlob(join(to, path), sha256, restored.blobs, environmentId, name));
  }
  t.same(await checkFiles(restored), { files: 4, lost: [] });
  t.same(lostFiles(recorded, sums), []);
  t.equal(await restored.blobs.sweepStaged(0), 0, 'nothing is left staged');
});

t.test('files are kept while they are copied, and no longer', async (t) => {
  const bucket = new MemoryBucket(new ManualClock(0));
  const [blobs, server] = [new MemoryBlobs(bucket), new MemoryBlobs(bucket)];
  const { signal } = new AbortController();
  t.equal(
    await whileFilesAreKept(blobs, signal, async () => ((await server.isRetained()) ? 'copied' : 'not kept')),
    'copied',
  );
  t.equal(await server.isRetained(), false);
  await t.rejects(
    whileFilesAreKept(blobs, signal, () => Promise.reject(new Error('the disk is full'))),
    /disk is full/,
  );
  t.equal(await server.isRetained(), false, 'nor after a failure');
});

t.test('a copy that takes longer than the term of its lease keeps the files, because it renews it', async (t) => {
  const clock = new ManualClock(0);
  const bucket = new MemoryBucket(clock);
  const [blobs, server] = [new MemoryBlobs(bucket), new MemoryBlobs(bucket)];
  const work = async (): Promise<string> => {
    const [lease] = bucket.leases;
    for (let n = 0; n < 4; n++) {
      if (!(await server.isRetained())) return 'not kept';
      const before = lease?.renewals ?? 0;
      clock.advance(RETENTION_TERM_MS * 0.6);
      await until(() => (lease?.renewals ?? 0) > before);
    }
    return 'copied';
  };
  t.equal(await whileFilesAreKept(blobs, new AbortController().signal, work, 1), 'copied');
});

t.test('a copy that was stopped for longer than the term of its lease is not called complete', async (t) => {
  const clock = new ManualClock(0);
  const bucket = new MemoryBucket(clock);
  const [blobs, server] = [new MemoryBlobs(bucket), new MemoryBlobs(bucket)];
  const stopped = async (): Promise<void> => {
    await server.isRetained();
    clock.advance(RETENTION_TERM_MS + 1);
    t.equal(await server.isRetained(), false, 'the server removes files again');
  };
  const { signal } = new AbortController();
  const failure = { message: /stopped for more than five minutes.* no backup was written/ };
  await t.rejects(
    whileFilesAreKept(blobs, signal, async () => {
      await stopped();
      return 'copied';
    }),
    failure,
    'it ends before it renews',
  );
  await t.rejects(
    whileFilesAreKept(
      blobs,
      signal,
      async (kept) => {
        await stopped();
        await until(() => kept.aborted);
        kept.throwIfAborted();
      },
      1,
    ),
    failure,
    'it stops copying as soon as it finds out',
  );
});
