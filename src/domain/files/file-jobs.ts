import type { StoredFile } from '../../model/attachment.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Transaction } from '../../ports/store.ts';
import { userKey } from '../access/access.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { ENVIRONMENTS, FILE_JOBS, filesOf } from '../records/partitions.ts';

/**
 * `asked`: a thumbnail is to be made for which somebody waits. `clear`: the environment is gone, all its bytes are to
 * follow; there is no `fileId`. `remove`: the record is gone, its bytes are to follow. `thumb`: a thumbnail is to be made.
 * What comes first here is done first.
 */
export type FileJobKind = 'asked' | 'clear' | 'remove' | 'thumb';

/** Work on a file that was recorded in the commit which made it necessary; doing it twice does no harm. */
export interface FileJob {
  readonly key: string;
  readonly kind: FileJobKind;
  readonly environmentId: string;
  readonly fileId: string;
  /** Names whose file it is, so that the files of different users take turns. */
  readonly owner: string;
}

/** Name of the thumbnail of a file, beside the file's own, which is its id. */
export const thumbnailName = (fileId: string): string => `${fileId}.thumb`;

/** The id of the file that a blob is the thumbnail of; the blob's own name for any other. */
export const fileOfThumbnail = (blob: string): string => blob.replace(/\.thumb$/, '');

const jobKey = (kind: FileJobKind, environmentId: string, fileId: string): string => `${kind}~${environmentId}~${fileId}`;

/**
 * Leaves work to the background worker, in the commit of `tx`.
 *
 * @param userId who uploaded the file, where a thumbnail is to be made
 */
export function putFileJob(tx: Transaction, kind: FileJobKind, environmentId: string, fileId: string, userId = ''): void {
  tx.put(FILE_JOBS, jobKey(kind, environmentId, fileId), userKey(environmentId, userId));
}

/** Makes sure that the thumbnail of a file of this user will be made next, also of a file whose first try was lost. */
export async function requestThumbnail(ctx: Context, environmentId: string, fileId: string, userId: string): Promise<void> {
  if ((await ctx.store.get(FILE_JOBS, jobKey('asked', environmentId, fileId))) !== undefined) return;
  await ctx.store.transact((tx) => Promise.resolve(putFileJob(tx, 'asked', environmentId, fileId, userId)));
}

/**
 * The work that is left and can be done now, in its order; at most `limit` pieces, where that is given. While the files
 * are held, nothing is removed.
 */
export async function pendingFileJobs(ctx: Context, limit?: number): Promise<FileJob[]> {
  const jobs = await listFileJobs(ctx, '', limit);
  if (!jobs.some(isRemoval) || !(await requireFileStorage(ctx).blobs.isHeld())) return jobs;
  const others = await Promise.all(['asked~', 'thumb~'].map((prefix) => listFileJobs(ctx, prefix, limit)));
  return others.flat().slice(0, limit);
}

async function listFileJobs(ctx: Context, prefix: string, limit?: number): Promise<FileJob[]> {
  const entries = await ctx.store.range(FILE_JOBS, { prefix, limit });
  return entries.map(({ key, value: owner }) => {
    const [kind = '', environmentId = '', fileId = ''] = key.split('~');
    return { key, kind: kind as FileJobKind, environmentId, fileId, owner };
  });
}

const isRemoval = ({ kind }: FileJob): boolean => kind === 'clear' || kind === 'remove';

/** Removes the files of an environment whose record is gone; while the files are held, the background worker does it later. */
export async function clearFiles(ctx: Context, environmentId: string): Promise<void> {
  if (ctx.blobs === undefined) return;
  if (await ctx.blobs.isHeld()) await ctx.store.transact((tx) => Promise.resolve(putFileJob(tx, 'clear', environmentId, '')));
  else await ctx.blobs.removeAll(environmentId);
}

/** Forgets the removals that are left of an environment, which is about to come back by an import. */
export async function cancelRemovals(ctx: Context, environmentId: string): Promise<void> {
  const jobs = await Promise.all(['clear', 'remove'].map((kind) => listFileJobs(ctx, `${kind}~${environmentId}~`)));
  if (jobs.flat().length > 0) await deleteFileJobs(ctx, jobs.flat());
}

/** Forgets work that is done. */
export async function deleteFileJobs(ctx: Context, jobs: readonly FileJob[]): Promise<void> {
  await ctx.store.transact((tx) => {
    for (const { key } of jobs) tx.delete(FILE_JOBS, key);
    return Promise.resolve();
  });
}

/** Does a piece of work. Returns false when it has to wait, because the files are held; rejects when it should be tried again. */
export async function runFileJob(ctx: Context, job: FileJob): Promise<boolean> {
  if (isRemoval(job)) return removeFiles(ctx, job);
  await makeThumbnail(ctx, job.environmentId, job.fileId);
  return true;
}

async function removeFiles(ctx: Context, { kind, environmentId, fileId }: FileJob): Promise<boolean> {
  const { blobs } = requireFileStorage(ctx);
  // What an import has brought back since the job was left stays.
  const isBack = kind === 'clear' ? (await ctx.store.get(ENVIRONMENTS, environmentId)) !== undefined : await fileExists(ctx, environmentId, fileId);
  if (isBack) return true;
  if (await blobs.isHeld()) return false;
  if (kind === 'clear') await blobs.removeAll(environmentId);
  else for (const name of [fileId, thumbnailName(fileId)]) await blobs.remove(environmentId, name);
  return true;
}

async function makeThumbnail(ctx: Context, environmentId: string, fileId: string): Promise<void> {
  const { blobs, media } = requireFileStorage(ctx);
  const name = thumbnailName(fileId);
  if (!(await fileExists(ctx, environmentId, fileId)) || (await blobs.stat(environmentId, name)) !== undefined) return;
  const thumbnail = await media.thumbnail(await readBlob(blobs, environmentId, fileId));
  if (thumbnail === null) return markNoThumbnail(ctx, environmentId, fileId);
  const staged = await blobs.stage();
  try {
    await staged.write(thumbnail);
    await staged.commit(environmentId, name);
  } finally {
    await staged.discard();
  }
  // Removed meanwhile: whoever removed it may have looked before this was there.
  if (!(await fileExists(ctx, environmentId, fileId))) await blobs.remove(environmentId, name);
}

async function fileExists(ctx: Context, environmentId: string, fileId: string): Promise<boolean> {
  return (await ctx.store.get(filesOf(environmentId), fileId)) !== undefined;
}

async function readBlob(blobs: Blobs, environmentId: string, name: string): Promise<Buffer> {
  const { size = 0 } = (await blobs.stat(environmentId, name)) ?? {};
  const reader = await blobs.open(environmentId, name);
  try {
    return await reader.read(0, size);
  } finally {
    await reader.close();
  }
}

async function markNoThumbnail(ctx: Context, environmentId: string, fileId: string): Promise<void> {
  await ctx.store.transact(async (tx) => {
    const stored = await tx.get(filesOf(environmentId), fileId);
    if (stored === undefined) return;
    const file: StoredFile = { ...(JSON.parse(stored) as StoredFile), noThumbnail: true };
    tx.put(filesOf(environmentId), fileId, JSON.stringify(file));
  });
}
