import { join } from 'node:path';
import { setImmediate as turnOver } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import { createComment, deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import type { UserActor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import { timeKey } from '../../src/lib/ids.ts';
import { createEnvironment, deleteEnvironment } from '../../src/domain/environments/environments.ts';
import { pendingFileJobs, runFileJob, thumbnailName } from '../../src/domain/files/file-jobs.ts';
import {
  checkFiles,
  findOrphans,
  keepFromOrphans,
  type Orphan,
  removeOrphans,
  sweepUnlinked,
} from '../../src/domain/files/file-sweep.ts';
import { safeFilename } from '../../src/domain/files/filenames.ts';
import { filesOf } from '../../src/domain/records/partitions.ts';
import { createThread, deleteThread } from '../../src/domain/comments/threads.ts';
import { beginUpload, type UploadConfig } from '../../src/domain/files/uploads.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import type { Comment } from '../../src/model/comment.ts';
import { FileJobs } from '../../src/workers/background/file-jobs.ts';
import type { Media } from '../../src/ports/media.ts';
import type { Transaction } from '../../src/ports/store.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { addComment, createWorld, startThread, type World } from './world.ts';

const HOUR = 3_600_000;
const unlimited: UploadConfig = { uploads: { megapixelsPerMinute: 0 } };
const log = createLogger({ level: 'silent', name: 'test' });

/** Media that accepts any content as its declared type. */
const trusting: Media = {
  sniff: async () => undefined,
  image: async () => ({ mimeType: 'image/png', width: 3, height: 2 }),
  duration: async () => 1234,
  thumbnail: async () => Buffer.from('thumbnail'),
};

interface FileWorld extends World {
  readonly ctx: Context & Required<Pick<Context, 'blobs' | 'media'>>;
  /** Does the pending file jobs. */
  work(): Promise<void>;
}

async function createFileWorld(t: Test, media: Media = trusting): Promise<FileWorld> {
  const world = await createWorld(t);
  const blobs = new LocalBlobs({ path: join(tempFolder(t), 'files'), minFreeBytes: 0 });
  const ctx = { ...world.ctx, blobs, media };
  const jobs = new FileJobs(ctx, log);
  return { ...world, ctx, work: () => jobs.runDue() };
}

async function put(
  { ctx }: FileWorld,
  actor: UserActor,
  contentType = 'image/png',
  config = unlimited,
  content = 'bytes',
): Promise<Attachment> {
  const upload = await beginUpload(ctx, actor, config, {
    filename: 'a.png',
    contentType,
    isDeclared: true,
    minBytes: 0,
  });
  await upload.write(Buffer.from(content));
  try {
    return await upload.finish();
  } finally {
    await upload.discard();
  }
}

async function blobsOf({ ctx, environment }: FileWorld): Promise<string[]> {
  const names: string[] = [];
  for await (const name of ctx.blobs.list(environment.id)) names.push(name);
  return names.sort();
}

const commentIn = (body: string): Comment => (JSON.parse(body) as { comment: Comment }).comment;

t.test('an upload is linked by the comment that names it, which shows it', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, backend, ann } = world;
  const { threadId } = await startThread(world);
  const [one, two] = [await put(world, ann), await put(world, ann, 'audio/wav')];
  t.match(one, { type: 'image', width: 3, height: 2, thumbnailUrl: `${one.url}?thumb=1` });
  t.match(two, { type: 'audio', durationMs: 1234 });
  const comment = await addComment(world, threadId, { attachmentIds: [two.id, one.id, two.id] });
  t.strictSame(comment.attachments, [two, one], 'in the order given, each once');

  const outcome = await createThread(
    ctx,
    backend,
    'room',
    { userId: 'ann', body: '', attachmentIds: [(await put(world, ann)).id] },
    null,
  );
  const { thread } = JSON.parse(outcome.body) as { thread: { comments: Comment[] } };
  t.equal(
    thread.comments[0]?.attachments.length,
    1,
    'the first comment of a thread takes them, and needs no text then',
  );
  const event = (await world.events()).at(-1);
  t.match(event?.data, { comment: { attachments: [{ type: 'image' }] } }, 'events show them');
});

t.test('uploads that cannot be linked are refused, and nothing is written', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, backend, ann, bob } = world;
  const { threadId } = await startThread(world);
  const mine = await put(world, ann);
  const write = (actor: typeof backend | UserActor, fields: object) =>
    createComment(ctx, actor, threadId, { userId: 'ann', body: 'x', ...fields }, null);
  const other = await createEnvironment(ctx, { slug: 'other' });
  const foreign = await put(world, { ...ann, environment: other });

  await t.rejects(write(backend, { attachmentIds: ['file_none'] }), {
    code: 'unknown_attachment',
    message: /"file_none", which is not an upload of this environment/,
  });
  await t.rejects(write(backend, { attachmentIds: [mine.id, foreign.id] }), { code: 'unknown_attachment' });
  await t.rejects(write(backend, { attachmentIds: ['../x'] }), { code: 'unknown_attachment' });
  await t.rejects(write(bob, { attachmentIds: [mine.id] }), {
    code: 'unknown_attachment',
    message: /not an upload of yours/,
  });
  await t.rejects(write(backend, { attachmentIds: 'x' }), {
    code: 'invalid_request',
    message: 'attachmentIds must be an array',
  });
  await t.rejects(write(backend, { attachmentIds: [1] }), {
    code: 'invalid_request',
    message: 'attachmentIds[0] must be a string',
  });
  await t.rejects(write(backend, { attachmentIds: Array(11).fill('x') }), {
    code: 'invalid_request',
    message: 'attachmentIds must hold at most 10 ids',
  });
  await t.rejects(write(backend, { body: '', attachmentIds: [] }), {
    code: 'invalid_request',
    message: /^body must be 1 to 10000/,
  });
  await t.rejects(write(backend, { body: ' ' }), { code: 'invalid_request' });
  await write(ann, { body: '  ', attachmentIds: [mine.id] });
  await t.rejects(write(backend, { attachmentIds: [mine.id] }), { code: 'attachment_linked' });
  t.equal((await world.events()).length, 2);
  await write(backend, { attachmentIds: [(await put(world, bob)).id] });
});

t.test('an edit keeps, replaces or removes attachments', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, backend, ann, bob } = world;
  const { threadId } = await startThread(world);
  const [one, two, three] = [await put(world, ann), await put(world, ann), await put(world, ann)];
  const { id } = await addComment(world, threadId, { attachmentIds: [one.id, two.id] });
  const edit = async (fields: object, actor: typeof backend | UserActor = ann): Promise<Comment> =>
    commentIn(await editComment(ctx, actor, id, { body: 'new', ...fields }));

  t.strictSame((await edit({})).attachments, [one, two], 'absent: unchanged');
  t.equal((await edit({ body: '' })).body, '', 'it still has some');
  await t.rejects(
    edit({ attachmentIds: [three.id, one.id] }, { ...bob, role: 'moderator' }),
    { code: 'unknown_attachment' },
    'not even a moderator links what another uploaded',
  );
  t.strictSame(
    (await edit({ attachmentIds: [one.id] }, { ...bob, role: 'moderator' })).attachments,
    [one],
    'but keeps and removes what is there',
  );
  t.strictSame((await edit({ attachmentIds: [three.id, one.id] })).attachments, [three, one]);
  await t.rejects(edit({ body: '', attachmentIds: [] }), { code: 'invalid_request' });
  t.strictSame((await edit({ attachmentIds: [] })).attachments, []);
  await t.rejects(edit({ body: '' }), { code: 'invalid_request' }, 'it has none any more');
  await world.work();
  t.strictSame(await blobsOf(world), [], 'their bytes are gone, thumbnails too');
  await t.rejects(
    edit({ attachmentIds: [two.id] }),
    { code: 'unknown_attachment' },
    'a removed file does not come back',
  );
});

t.test('files are removed with their comment, thread and environment, after the commit', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, backend, ann, environment } = world;
  const first = await startThread(world);
  const second = await startThread(world, 'room', { attachmentIds: [(await put(world, ann)).id] });
  const comment = await addComment(world, first.threadId, { attachmentIds: [(await put(world, ann)).id] });
  const kept = await put(world, ann);
  await addComment(world, first.threadId, { body: 'says "attachments":[{ and no more', attachmentIds: [kept.id] });
  await world.work();
  t.equal((await blobsOf(world)).length, 6, 'three files and their thumbnails');
  await deleteComment(ctx, backend, comment.id);
  t.equal((await blobsOf(world)).length, 6, 'the commit itself removes no bytes');
  t.strictSame(
    (await pendingFileJobs(ctx)).map(({ kind }) => kind),
    ['remove'],
  );
  await world.work();
  t.equal((await blobsOf(world)).length, 4);
  await deleteThread(ctx, backend, second.threadId);
  await world.work();
  t.strictSame(await blobsOf(world), [kept.id, thumbnailName(kept.id)]);
  await deleteEnvironment(ctx, environment.id);
  t.strictSame(await blobsOf(world), []);
});

t.test('while the blobs are retained, nothing is removed and thumbnails are still made', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, backend, ann, environment, clock } = world;
  const { threadId } = await startThread(world);
  const attachments: Attachment[] = [];
  for (let i = 0; i < 30; i++) attachments.push(await put(world, ann, 'audio/wav'));
  for (const { id } of attachments)
    await deleteComment(ctx, backend, (await addComment(world, threadId, { attachmentIds: [id] })).id);
  const lease = await ctx.blobs.retain();
  const image = await put(world, ann);
  await world.work();
  t.strictSame(await blobsOf(world), [...attachments.map(({ id }) => id), image.id, thumbnailName(image.id)].sort());
  clock.advance(2 * HOUR);
  t.equal(
    await removeOrphans(ctx, [{ environmentId: environment.id, blob: attachments[0]?.id ?? '', bytes: 5 }]),
    false,
  );
  t.equal((await blobsOf(world)).length, 32);
  await lease.release();
  await world.work();
  t.strictSame(await blobsOf(world), [image.id, thumbnailName(image.id)]);
  t.strictSame(await pendingFileJobs(ctx), []);
});

t.test(
  'files of an environment deleted while the blobs were retained are removed later, unless it was imported again',
  async (t) => {
    const world = await createFileWorld(t);
    const { ctx, ann, environment } = world;
    const record = await ctx.store.get('envs', environment.id);
    const { id } = await put(world, ann, 'audio/wav');
    const lease = await ctx.blobs.retain();
    await deleteEnvironment(ctx, environment.id);
    await world.work();
    t.strictSame(await blobsOf(world), [id]);
    const putBack = (): Promise<void> => ctx.store.transact(async (tx) => tx.put('envs', environment.id, record ?? ''));
    await putBack();
    await lease.release();
    await world.work();
    t.strictSame(await blobsOf(world), [id]);
    const again = await ctx.blobs.retain();
    await deleteEnvironment(ctx, environment.id);
    await again.release();
    await world.work();
    t.strictSame(await blobsOf(world), []);
  },
);

t.test('uploads that no comment links within 24 hours are removed', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, ann, clock, environment } = world;
  const { threadId } = await startThread(world);
  const [old, linked] = [await put(world, ann), await put(world, ann)];
  await addComment(world, threadId, { attachmentIds: [linked.id] });
  clock.advance(HOUR);
  const young = await put(world, ann);
  clock.advance(23 * HOUR);
  t.equal(await sweepUnlinked(ctx, environment.id), 0, 'on the very moment it is kept');
  clock.advance(1);
  t.equal(await sweepUnlinked(ctx, environment.id, true), 1);
  t.equal(await sweepUnlinked(ctx, environment.id), 1);
  t.equal(await sweepUnlinked(ctx, environment.id), 0);
  await t.rejects(addComment(world, threadId, { attachmentIds: [old.id] }), { code: 'unknown_attachment' });
  await world.work();
  t.strictSame(await blobsOf(world), [linked, young].flatMap(({ id }) => [id, thumbnailName(id)]).sort());
});

t.test('bytes without a record are found, and records without bytes', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, ann, clock, environment } = world;
  const { blobs } = ctx;
  const known = await put(world, ann);
  await world.work();
  const place = async (environmentId: string, name: string): Promise<void> => {
    const staged = await blobs.stage(environmentId, name);
    await staged.write(Buffer.from('four'));
    await staged.commit();
  };
  const fresh = `file_${known.id.slice(5, -1)}${known.id.endsWith('z') ? 'y' : 'z'}`;
  await place(environment.id, fresh);
  await place(environment.id, 'foreign');
  await place('env_deleted', 'file_0000000000000000000a');
  const found = async (): Promise<Orphan[]> => {
    const orphans: Orphan[] = [];
    for await (const orphan of findOrphans(ctx)) orphans.push(orphan);
    return orphans.sort((a, b) => (a.blob < b.blob ? -1 : 1));
  };
  const deleted = { environmentId: 'env_deleted', blob: 'file_0000000000000000000a', bytes: 4 };
  t.strictSame(await found(), [deleted, { environmentId: environment.id, blob: 'foreign', bytes: 4 }]);
  clock.advance(HOUR + 1);
  t.equal((await found()).length, 3, 'what came just now may still get its record');
  await removeOrphans(ctx, await found());
  t.strictSame(await found(), []);
  t.strictSame(await blobs.environments(), [environment.id]);
  t.strictSame(await checkFiles(ctx), { files: 1, lost: [] });
  await blobs.remove(environment.id, known.id);
  t.strictSame(await checkFiles(ctx), { files: 1, lost: [known.id] });
});

t.test('an upload that takes longer than a day is no orphan while it ends, and is kept for a day after', async (t) => {
  const world = await createFileWorld(t);
  const { ann, clock, environment } = world;
  const found: Orphan[] = [];
  let looks = 0;
  const look = async (): Promise<void> => {
    for await (const orphan of findOrphans(world.ctx)) found.push(orphan);
    looks++;
  };
  // The bytes are there, and the record is not yet.
  const store = new Proxy(world.ctx.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== 'transact') return typeof value === 'function' ? value.bind(target) : value;
      return async (work: (tx: Transaction) => Promise<unknown>) => {
        await look();
        return target.transact(work);
      };
    },
  });
  const ctx = { ...world.ctx, store };
  const head = { filename: 'a.png', contentType: 'image/png', isDeclared: true, minBytes: 0 };
  const slow = await beginUpload(ctx, ann, unlimited, head);
  await slow.write(Buffer.from('bytes'));
  clock.advance(25 * HOUR);
  const { id } = await slow.finish();
  t.equal(looks, 2, 'before the record that keeps it, and before its own');
  t.strictSame(found, []);
  clock.advance(24 * HOUR);
  t.equal(await sweepUnlinked(ctx, environment.id, true), 0);
  t.equal(await sweepUnlinked(ctx, environment.id), 0);
  await look();
  t.strictSame(found, []);
  clock.advance(1);
  t.equal(await sweepUnlinked(ctx, environment.id), 1);
  t.equal(await ctx.store.get(filesOf(environment.id), id), undefined);

  const name = `file_${timeKey(clock.now() - HOUR)}00000000000`;
  await keepFromOrphans(ctx, environment.id, name);
  const staged = await ctx.blobs.stage(environment.id, name);
  await staged.commit();
  clock.advance(24 * HOUR + 1);
  t.equal(await sweepUnlinked(ctx, environment.id), 0, 'there is no file');
  await world.work();
  found.length = 0;
  await look();
  t.strictSame(
    found,
    [{ environmentId: environment.id, blob: name, bytes: 0 }],
    'after a crash it is one, a day later',
  );
});

t.test('a failed job is retried later and does not delay others', async (t) => {
  let broken = true;
  const media: Media = {
    ...trusting,
    thumbnail: async () => {
      if (broken) throw new Error('out of memory');
      return Buffer.from('thumbnail');
    },
  };
  const world = await createFileWorld(t, media);
  const { ctx, ann, clock, backend } = world;
  const image = await put(world, ann);
  const { threadId } = await startThread(world);
  const gone = await addComment(world, threadId, { attachmentIds: [(await put(world, ann, 'audio/wav')).id] });
  await deleteComment(ctx, backend, gone.id);
  await world.work();
  t.strictSame(
    (await pendingFileJobs(ctx)).map(({ kind }) => kind),
    ['thumb'],
  );
  broken = false;
  await world.work();
  t.equal((await pendingFileJobs(ctx)).length, 1, 'not at once');
  clock.advance(1_000);
  await world.work();
  t.strictSame(await pendingFileJobs(ctx), []);
  t.strictSame(await blobsOf(world), [image.id, thumbnailName(image.id)]);
});

t.test('a job that is done twice, or for a deleted file, has no effect', async (t) => {
  const world = await createFileWorld(t, { ...trusting, thumbnail: async () => null });
  const { ctx, ann, environment } = world;
  const { id } = await put(world, ann);
  const [job] = await pendingFileJobs(ctx);
  if (job === undefined) throw new Error('no job');
  await runFileJob(ctx, job);
  await runFileJob(ctx, job);
  t.strictSame(await blobsOf(world), [id], 'there is no thumbnail of it');
  await runFileJob(ctx, { ...job, kind: 'remove' });
  t.strictSame(await blobsOf(world), [id], 'what a record names stays');
  await ctx.store.transact(async (tx) => tx.delete(filesOf(environment.id), id));
  await runFileJob(ctx, { ...job, kind: 'remove' });
  await runFileJob(ctx, { ...job, kind: 'remove' });
  await runFileJob(ctx, { ...job, fileId: 'file_none', environmentId: environment.id });
  t.strictSame(await blobsOf(world), []);
});

t.test('an upload whose record can’t be written leaves no bytes', async (t) => {
  const world = await createFileWorld(t);
  const { ctx, ann, environment } = world;
  const upload = await beginUpload(
    {
      ...ctx,
      store: Object.assign(Object.create(ctx.store) as typeof ctx.store, {
        get: ctx.store.get.bind(ctx.store),
        transact: () => Promise.reject(new Error('no')),
      }),
    },
    ann,
    unlimited,
    {
      filename: 'x',
      contentType: 'image/png',
      isDeclared: true,
      minBytes: 0,
    },
  );
  await upload.write(Buffer.from('x'));
  await t.rejects(upload.finish(), { message: 'no' });
  await upload.discard();
  t.strictSame(await blobsOf({ ...world, environment }), []);
});

for (const quota of ['userUploadMb', 'uploadMb'] as const) {
  t.test(`an upload stops as soon as it passes ${quota}, also because of another upload`, async (t) => {
    const world = await createFileWorld(t);
    const KB = 1024;
    const { environment } = world.ann;
    const ann: UserActor = {
      ...world.ann,
      environment: { ...environment, settings: { ...environment.settings, quotas: { [quota]: 1 } } },
    };
    const begin = () =>
      beginUpload(world.ctx, ann, unlimited, {
        filename: 'a.png',
        contentType: 'image/png',
        isDeclared: true,
        minBytes: 0,
      });
    const refused = { code: 'quota_exceeded', message: new RegExp(`^The quota ${quota} is used up`) };
    const [first, second, third] = [await begin(), await begin(), await begin()];
    await first.write(Buffer.alloc(600 * KB));
    await second.write(Buffer.alloc(300 * KB));
    await t.rejects(second.write(Buffer.alloc(800 * KB)), refused, 'by itself');
    await second.discard();
    await third.write(Buffer.alloc(400 * KB));
    await first.finish();
    await third.write(Buffer.alloc(24 * KB));
    await t.rejects(third.write(Buffer.alloc(1)), refused, 'together with a finished upload');
    await third.discard();
    t.equal(await world.ctx.blobs.sweepStaged(0, true), 0, 'nothing is left');
  });
}

t.test('file names are safe and at most 255 bytes long', (t) => {
  t.equal(safeFilename(`${'😀'.repeat(100)}.png`, 'image/png'), `${'😀'.repeat(62)}.png`);
  t.equal(safeFilename(`x.${'y'.repeat(300)}`, 'image/png'), `x.${'y'.repeat(253)}`);
  t.equal(safeFilename('/', 'image/png'), 'file.png');
  t.equal(safeFilename(' a\tb\r\nSet-Cookie: x ', 'image/png'), 'abSet-Cookie: x');
  t.end();
});

t.test('the pixels of a user are counted; once they are used up, images are refused with Retry-After', async (t) => {
  const sizes = [
    [3_000, 3_000],
    [1_000, 1_000],
    [1_000, 500],
    [1_000, 500],
  ];
  let decoded = 0;
  const world = await createFileWorld(t, {
    ...trusting,
    image: async (_file, admit) => {
      const [width = 0, height = 0] = sizes[decoded] ?? [];
      await admit(width * height);
      decoded += 1;
      return { mimeType: 'image/png', width, height };
    },
  });
  const config = { uploads: { megapixelsPerMinute: 10 } };
  await put(world, world.ann, 'image/png', config);
  await put(world, world.ann, 'image/png', config);
  const refused = {
    code: 'rate_limited',
    message: 'PNG, GIF, WebP and progressive JPEG images of more than 10 megapixels in a minute. Try again in 3s',
    retryAfter: 3,
  };
  await t.rejects(put(world, world.ann, 'image/png', config), refused);
  t.equal(decoded, 2, 'it was not decoded');
  await put(world, world.bob, 'image/png', config);
  await put(world, world.ann, 'audio/ogg', config);
  world.clock.advance(3_000);
  await t.resolves(put(world, world.ann, 'image/png', config));
  for (let i = 0; i < 20; i++) await put(world, world.ann);
  await world.work();
  t.equal((await blobsOf(world)).filter((name) => !name.includes('thumb')).length, 25, 'what was refused is not kept');
});

t.test('the files of one user that are checked at once are bounded, those of others are not affected', async (t) => {
  const ends: (() => void)[] = [];
  const world = await createFileWorld(t, {
    ...trusting,
    duration: () => new Promise((resolve) => ends.push(() => resolve(1))),
  });
  const many = Array.from({ length: 32 }, () => put(world, world.ann, 'audio/ogg'));
  while (ends.length < 32) await turnOver();
  const refused = {
    code: 'rate_limited',
    message: 'At most 32 files of one user are checked at once. Try again in 1s',
    retryAfter: 1,
  };
  await t.rejects(put(world, world.ann, 'audio/ogg'), refused);
  const bob = put(world, world.bob, 'audio/ogg');
  while (ends.length < 33) await turnOver();
  for (const end of ends) end();
  await Promise.all([...many, bob]);
  const again = put(world, world.ann, 'audio/ogg');
  while (ends.length < 34) await turnOver();
  ends.at(-1)?.();
  await t.resolves(again);
});

t.test('thumbnails of different users are made in turn', async (t) => {
  const made: number[] = [];
  const world = await createFileWorld(t, {
    ...trusting,
    thumbnail: async (image) => (made.push(image.length), Buffer.from('thumbnail')),
  });
  for (let i = 0; i < 40; i++) await put(world, world.ann);
  await put(world, world.bob, 'image/png', unlimited, 'one of bob');
  await world.work();
  t.equal(made.length, 41);
  // Jobs run beside each other, so one may overtake another: within the batch of 12.
  t.ok(made.indexOf('one of bob'.length) < 12, `bob's was made after ${made.indexOf('one of bob'.length)} others`);
});
