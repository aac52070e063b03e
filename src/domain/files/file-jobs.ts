import type { StoredFile } from '../../model/attachment.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Transaction } from '../../ports/store.ts';
import { userKey } from '../access/access.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { findFile } from './find-file.ts';
import { ENVIRONMENTS, FILE_JOBS, filesOf } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';

/**
 * The kinds of jobs, in the order in which they are done:
 *
 * - `asked`: make a thumbnail for which a client waits.
 * - `clear`: remove the bytes of all files of an environment that was deleted; `fileId` is empty.
 * - `remove`: remove the bytes of a file whose record was deleted.
 * - `thumb`: make a thumbnail.
 */
export type FileJobKind = 'asked' | 'clear' | 'remove' | 'thumb';

/** Work on a file, recorded in the commit that made it necessary. It is idempotent. */
export interface FileJob {
  readonly key: string;
  readonly kind: FileJobKind;
  readonly environmentId: string;
  readonly fileId: string;
  /** Identifies the user of the file. Jobs of different users are done in turn. */
  readonly userKey: string;
}

/** Name of the thumbnail of a file, beside the file's own, which is its id. */
export const thumbnailName = (fileId: string): string => `${fileId}.thumb`;

/** The id of the file of which a blob is the thumbnail; the name of the blob if it is not a thumbnail. */
export const fileOfThumbnail = (blob: string): string => blob.replace(/\.thumb$/, '');

const jobKey = (kind: FileJobKind, environmentId: string, fileId: string): string =>
  `${kind}~${environmentId}~${fileId}`;

/**
 * Adds a job for the background worker in the commit of `tx`.
 *
 * @param userId the uploader of the file, for the jobs that make a thumbnail
 */
export function putFileJob(
  tx: Transaction,
  kind: FileJobKind,
  environmentId: string,
  fileId: string,
  userId = '',
): void {
  tx.put(FILE_JOBS, jobKey(kind, environmentId, fileId), userKey(environmentId, userId));
}

/** Makes the thumbnail of a file of this user the next job, also if the first job for it was lost. */
export async function requestThumbnail(
  ctx: Context,
  environmentId: string,
  fileId: string,
  userId: string,
): Promise<void> {
  if ((await ctx.store.get(FILE_JOBS, jobKey('asked', environmentId, fileId))) !== undefined) return;
  await ctx.store.transact((tx) => Promise.resolve(putFileJob(tx, 'asked', environmentId, fileId, userId)));
}

/**
 * The jobs that can be done now, in order, at most `limit` of them if given. While the blobs are retained, removals are
 * left out.
 */
export async function pendingFileJobs(ctx: Context, limit?: number): Promise<readonly FileJob[]> {
  const jobs = await listFileJobs(ctx, '', limit);
  if (!jobs.some(isRemoval) || !(await requireFileStorage(ctx).blobs.isRetained())) return jobs;
  const others = await Promise.all(['asked~', 'thumb~'].map((prefix) => listFileJobs(ctx, prefix, limit)));
  return others.flat().slice(0, limit);
}

/** Cached until any job is added or done, because it is asked all the time. */
function listFileJobs({ store }: Context, prefix: string, limit?: number): Promise<readonly FileJob[]> {
  return store.cached(`file jobs ${prefix} ${limit}`, [FILE_JOBS], async () => {
    const entries = await store.range(FILE_JOBS, { prefix, limit });
    return entries.map(({ key, value: userKey }) => {
      const [kind = '', environmentId = '', fileId = ''] = key.split('~');
      return { key, kind: kind as FileJobKind, environmentId, fileId, userKey };
    });
  });
}

const isRemoval = ({ kind }: FileJob): boolean => kind === 'clear' || kind === 'remove';

/**
 * Removes the files of a deleted environment. While the blobs are retained, it leaves a job for the background worker
 * instead.
 */
export async function clearFiles(ctx: Context, environmentId: string): Promise<void> {
  if (ctx.blobs === undefined) return;
  if (await ctx.blobs.isRetained())
    await ctx.store.transact((tx) => Promise.resolve(putFileJob(tx, 'clear', environmentId, '')));
  else await ctx.blobs.removeAll(environmentId);
}

/** Deletes the pending removals of an environment that is about to be imported again. */
export async function cancelRemovals(ctx: Context, environmentId: string): Promise<void> {
  const jobs = await Promise.all(['clear', 'remove'].map((kind) => listFileJobs(ctx, `${kind}~${environmentId}~`)));
  if (jobs.flat().length > 0) await deleteFileJobs(ctx, jobs.flat());
}

/** Deletes finished jobs. */
export async function deleteFileJobs(ctx: Context, jobs: readonly FileJob[]): Promise<void> {
  await ctx.store.transact((tx) => {
    for (const { key } of jobs) tx.delete(FILE_JOBS, key);
    return Promise.resolve();
  });
}

/** Does a job. Returns false if it must wait because the blobs are retained; rejects if it should be retried. */
export async function runFileJob(ctx: Context, job: FileJob): Promise<boolean> {
  if (isRemoval(job)) return removeFiles(ctx, job);
  await makeThumbnail(ctx, job.environmentId, job.fileId);
  return true;
}

async function removeFiles(ctx: Context, { kind, environmentId, fileId }: FileJob): Promise<boolean> {
  const { blobs } = requireFileStorage(ctx);
  // An import may have restored the environment or the file since the job was added.
  const isRestored =
    kind === 'clear'
      ? (await ctx.store.get(ENVIRONMENTS, environmentId)) !== undefined
      : await fileExists(ctx, environmentId, fileId);
  if (isRestored) return true;
  if (await blobs.isRetained()) return false;
  if (kind === 'clear') await blobs.removeAll(environmentId);
  else for (const name of [fileId, thumbnailName(fileId)]) await blobs.remove(environmentId, name);
  return true;
}

async function makeThumbnail(ctx: Context, environmentId: string, fileId: string): Promise<void> {
  const { blobs, media } = requireFileStorage(ctx);
  const name = thumbnailName(fileId);
  if (!(await fileExists(ctx, environmentId, fileId)) || (await blobs.stat(environmentId, name)) !== undefined) return;
  const bytes = await readBlob(blobs, environmentId, fileId);
  // Once the bytes are back, the next request for the thumbnail adds a new job.
  if (bytes === null) return;
  const thumbnail = await media.thumbnail(bytes);
  if (thumbnail === null) return markNoThumbnail(ctx, environmentId, fileId);
  const staged = await blobs.stage(environmentId, name);
  try {
    await staged.write(thumbnail);
    await staged.commit();
  } finally {
    await staged.discard();
  }
  // If the file was removed in the meantime, its removal may have run before the thumbnail existed.
  if (!(await fileExists(ctx, environmentId, fileId))) await blobs.remove(environmentId, name);
}

async function fileExists(ctx: Context, environmentId: string, fileId: string): Promise<boolean> {
  return (await ctx.store.get(filesOf(environmentId), fileId)) !== undefined;
}

/** Returns null if the bytes are lost. */
async function readBlob(blobs: Blobs, environmentId: string, name: string): Promise<Buffer | null> {
  const stat = await blobs.stat(environmentId, name);
  if (stat === undefined) return null;
  const reader = await blobs.open(environmentId, name);
  try {
    return await reader.read(0, stat.size);
  } finally {
    await reader.close();
  }
}

async function markNoThumbnail(ctx: Context, environmentId: string, fileId: string): Promise<void> {
  await ctx.store.transact(async (tx) => {
    const file = await findFile(tx, environmentId, fileId);
    if (file !== undefined)
      putRecord(tx, filesOf(environmentId), fileId, { ...file, noThumbnail: true } satisfies StoredFile);
  });
}
