import { setTimeout as delay } from 'node:timers/promises';
import { CollabError } from '../../model/errors.ts';
import type { StoredFile } from '../../model/attachment.ts';
import { requireRoomAccess } from '../access/access.ts';
import { findLocation } from '../comments/comment-location.ts';
import { parseThread } from '../comments/thread-view.ts';
import type { UserActor } from '../access/actor.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { findFile } from './find-file.ts';
import { findOpenItem } from '../moderation/queue.ts';
import { fileOfThumbnail, requestThumbnail, thumbnailName } from './file-jobs.ts';
import { THREAD_KEY } from '../records/partitions.ts';

/** The data with which a file or its thumbnail is served. */
export interface ServedFile {
  readonly environmentId: string;
  /** Name of the blob. */
  readonly blob: string;
  readonly mimeType: string;
  readonly filename: string;
  /** HTTP entity tag of the content, without the quotes. */
  readonly tag: string;
  /** Whether it may not exist yet: call `awaitThumbnail` first. */
  readonly isThumbnail: boolean;
}

/** How long a request waits for a thumbnail that is not made yet. */
const THUMBNAIL_TIMEOUT_MS = 15_000;
const POLL_MS = 20;

const fileNotFound = (message = 'File not found'): CollabError => new CollabError('file_not_found', message);

/**
 * Finds a file, or its thumbnail, for a user. Throws `forbidden` for a file of another environment or of a room that
 * the user has no access to, `file_not_found`.
 */
export async function openFile(
  ctx: Context,
  actor: UserActor,
  { environmentId, fileId, thumbnail }: { environmentId: string; fileId: string; thumbnail: boolean },
): Promise<ServedFile> {
  if (actor.environment.id !== environmentId)
    throw new CollabError('forbidden', 'The credentials belong to a different environment than the file');
  const file = await requireFile(ctx, environmentId, fileId);
  if (file.held === true) await requireHeldFileAccess(ctx, actor, file);
  else if (actor.rooms !== null && file.commentId !== null)
    await requireLinkedCommentAccess(ctx, actor, file.commentId);
  const { mimeType, filename, type } = file.attachment;
  const tag = file.sha256.slice(0, 32);
  if (!thumbnail) return { environmentId, blob: fileId, mimeType, filename, tag, isThumbnail: false };
  if (type !== 'image') throw fileNotFound('Only images have a thumbnail');
  const thumbnailFilename = `${filename.replace(/\.[^.]{1,8}$/, '')}.thumb.jpg`;
  return {
    environmentId,
    blob: thumbnailName(fileId),
    mimeType: 'image/jpeg',
    filename: thumbnailFilename,
    tag: `${tag}-t`,
    isThumbnail: true,
  };
}

/**
 * Resolves once a thumbnail exists, and requests it if it does not. Throws `file_not_found` if none can be made, as of a
 * file whose bytes are lost, and `internal` if that takes too long.
 *
 * @param isWanted called while waiting; false ends the wait
 */
export async function awaitThumbnail(
  ctx: Context,
  { environmentId, blob }: ServedFile,
  isWanted: () => boolean,
): Promise<void> {
  const { blobs } = requireFileStorage(ctx);
  const fileId = fileOfThumbnail(blob);
  const exists = async (name = blob): Promise<boolean> => (await blobs.stat(environmentId, name)) !== undefined;
  if (await exists()) return;
  // Lost bytes, as after the restore of an older bucket: nothing to wait for.
  if (!(await exists(fileId))) throw fileNotFound();
  const { uploadedBy } = await requireFile(ctx, environmentId, fileId);
  await requestThumbnail(ctx, environmentId, fileId, uploadedBy);
  for (
    const end = performance.now() + THUMBNAIL_TIMEOUT_MS;
    isWanted() && performance.now() < end;
    await delay(POLL_MS)
  ) {
    if (await exists()) return;
    if ((await requireFile(ctx, environmentId, fileId)).noThumbnail === true)
      throw fileNotFound('No thumbnail can be made of this image');
  }
  throw new CollabError('internal', 'The thumbnail is not ready yet: try again');
}

async function requireFile(ctx: Context, environmentId: string, fileId: string): Promise<StoredFile> {
  const file = await findFile(ctx.store, environmentId, fileId);
  if (file === undefined) throw fileNotFound();
  return file;
}

/** A file of held content exists only for the user who uploaded it, and for moderators; for both within their rooms. */
async function requireHeldFileAccess(
  { store }: Context,
  actor: UserActor,
  { uploadedBy, commentId }: StoredFile,
): Promise<void> {
  if (actor.userId !== uploadedBy && actor.role !== 'moderator') throw fileNotFound();
  if (actor.rooms === null || commentId === null) return;
  const environmentId = actor.environment.id;
  const item =
    (await findOpenItem(store, environmentId, 'comment', commentId)) ??
    (await findOpenItem(store, environmentId, 'edit', commentId));
  if (item === undefined) throw fileNotFound();
  requireRoomAccess(actor, item.roomId);
}

async function requireLinkedCommentAccess(ctx: Context, actor: UserActor, commentId: string): Promise<void> {
  const location = await findLocation(ctx.store, actor.environment.id, commentId);
  const thread = location === undefined ? undefined : await ctx.store.get(location.partition, THREAD_KEY);
  if (thread === undefined) throw fileNotFound();
  requireRoomAccess(actor, parseThread(thread).roomId);
}
