import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LocalMedia } from '../../src/adapters/media/media.ts';
import { copyFiles, lostFiles } from '../../src/cli/backup/backup-files.ts';
import { blobAt } from '../../src/cli/backup/backup-folder.ts';
import { fileToBlob } from '../../src/cli/backup/copy-blob.ts';
import { checkFiles } from '../../src/domain/files/file-sweep.ts';
import { RecordedFiles } from '../../src/domain/files/recorded-files.ts';
import { beginUpload } from '../../src/domain/files/uploads.ts';
import { ENVIRONMENTS, filesOf } from '../../src/domain/records/partitions.ts';
import { MemoryBlobs } from '../doubles/memory-blobs.ts';
import { createWorld } from '../domain/world.ts';
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
