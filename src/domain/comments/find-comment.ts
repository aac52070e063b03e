import type { Comment } from '../../model/comment.ts';
import { CollabError } from '../../model/errors.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Reader } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { THREAD_KEY } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import { type CommentLocation, findLocation } from './comment-location.ts';
import { parseThread, requireThreadAccess } from './thread-view.ts';

/** A comment, where it is stored, and its thread. */
export interface FoundComment extends CommentLocation {
  readonly comment: Comment;
  readonly thread: Readonly<ThreadRecord>;
}

/** The error for an unknown comment. */
export const commentNotFound = (): CollabError => new CollabError('comment_not_found', 'Comment not found');

/**
 * A comment with its location and thread, all read by `reader`; undefined if there is none. The comments of a deleted
 * room are removed after their threads: without its thread, a comment does not exist.
 */
export async function findComment(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  commentId: string,
): Promise<FoundComment | undefined> {
  const location = await findLocation(reader, environmentId, commentId);
  if (location === undefined) return undefined;
  const comment = await readRecord<Comment>(reader, location.partition, location.key);
  const thread = await reader.get(location.partition, THREAD_KEY);
  return comment === undefined || thread === undefined
    ? undefined
    : { ...location, comment, thread: parseThread(thread) };
}

/** As `findComment`. Throws `comment_not_found`. */
export async function requireComment(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  commentId: string,
): Promise<FoundComment> {
  const found = await findComment(reader, environmentId, commentId);
  if (found === undefined) throw commentNotFound();
  return found;
}

/** Where a comment is stored, if it exists. Throws `comment_not_found` for an id that no comment can have. */
export async function requireLocation(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  commentId: string,
): Promise<CommentLocation> {
  const location = await findLocation(reader, environmentId, commentId);
  if (location === undefined) throw commentNotFound();
  return location;
}

/**
 * As `requireThreadAccess`, for the thread of a comment. Throws `comment_not_found` for an id that no comment can have.
 */
export async function requireCommentAccess(ctx: Context, actor: Actor, commentId: string): Promise<void> {
  if (actor.rooms === null) return;
  const { partition } = await requireLocation(ctx.store, actor.environment.id, commentId);
  await requireThreadAccess(ctx, actor, partition.slice(partition.lastIndexOf('/') + 1));
}
