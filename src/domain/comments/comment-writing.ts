import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import type { Comment } from '../../model/comment.ts';
import type { EventType } from '../../model/event.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import {
  parseThreadStats,
  presentThread,
  renderThreadStats,
  type Thread,
  type ThreadRecord,
  type ThreadStats,
} from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import { actorUserId } from '../access/access.ts';
import { emitChange } from '../events/emit.ts';
import { consumeQuota } from '../quotas/usage.ts';
import { NEWEST_KEY, roomRecordsOf, STATS_KEY, THREAD_KEY, threadKey, threadRecordsOf } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { ensureRoom, touchRoom } from '../rooms/rooms.ts';
import type { CommentLocation } from './comment-location.ts';

/** A comment to write, or to replace another version of it. */
export interface WrittenComment {
  readonly location: CommentLocation;
  readonly roomId: string;
  /** With its attachments, which the transaction has linked. */
  readonly comment: Comment;
  /** The time of the change, in milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Writes a new comment, counts it and emits `comment.created`. The transaction must have read the thread record.
 * Returns the JSON text of the comment. The commit fails with `quota_exceeded` or `invalid_request` at a limit.
 */
export function insertComment(tx: Transaction, actor: Actor, written: WrittenComment): string {
  const { location, comment, now } = written;
  consumeQuota(tx, actor, comment.userId, 'comments', 1);
  updateThreadStats(tx, location.partition, timestamp(now), 1, limitsOf(actor.environment).commentsPerThread);
  return putComment(tx, actor, written, 'comment.created', comment.userId);
}

/** Replaces a comment by an edited version and emits `comment.updated`. Returns the JSON text of the comment. */
export function replaceComment(tx: Transaction, actor: Actor, written: WrittenComment): string {
  updateThreadStats(tx, written.location.partition, timestamp(written.now), 0);
  return putComment(tx, actor, written, 'comment.updated', actorUserId(actor));
}

/** @param userId the user whose change the event is */
function putComment(
  tx: Transaction,
  { environment, via }: Actor,
  { location, roomId, comment, now }: WrittenComment,
  type: EventType,
  userId: string | null,
): string {
  const text = JSON.stringify(comment);
  tx.put(location.partition, location.key, text);
  touchRoom(tx, environment.id, roomId, timestamp(now));
  emitChange(tx, environment, { type, at: now, roomId, threadId: comment.threadId, userId, via, data: text });
  return text;
}

/** A thread to write with its first comment. Both were created at `now`. */
export interface WrittenThread extends Omit<WrittenComment, 'roomId'> {
  readonly record: ThreadRecord;
}

/**
 * Writes a new thread with its first comment, and its room if necessary, and emits `thread.created`. The commit fails
 * in the same cases as with `insertComment`.
 */
export async function insertThread(
  tx: Transaction,
  actor: Actor,
  { record, location, comment, now }: WrittenThread,
): Promise<{ thread: Thread; commentText: string }> {
  const { environment, via } = actor;
  const { id, roomId, userId, createdAt: at } = record;
  const room = roomRecordsOf(environment.id, roomId);
  const partition = threadRecordsOf(environment.id, id);
  const stats: ThreadStats = { commentCount: 1, updatedAt: at };
  const commentText = JSON.stringify(comment);
  await ensureRoom(tx, environment.id, roomId, at);
  putRecord(tx, partition, THREAD_KEY, record);
  tx.put(partition, STATS_KEY, renderThreadStats(stats));
  tx.put(room, threadKey(at, id), id);
  tx.put(room, NEWEST_KEY, id);
  tx.put(location.partition, location.key, commentText);
  consumeQuota(tx, actor, userId, 'comments', 1);
  touchRoom(tx, environment.id, roomId, at, 1, 1);
  const thread = presentThread(record, stats);
  const data = `{"thread":${JSON.stringify(thread)},"comment":${commentText}}`;
  emitChange(tx, environment, { type: 'thread.created', at: now, roomId, threadId: id, userId, via, data });
  return { thread, commentText };
}

/** Whether a thread exists, or its comments do: those of a deleted room are removed later, in slices. */
export async function threadExists(tx: Transaction, partition: string): Promise<boolean> {
  return (await tx.get(partition, THREAD_KEY)) !== undefined || (await tx.range(partition, { limit: 1 })).length > 0;
}

/**
 * The JSON of the response to the creation of a thread: the fields that the API documents first, then the other fields
 * of a thread.
 */
export function renderCreatedThread(thread: Thread, commentText: string): string {
  const { id, roomId, resolved, position, createdAt, ...more } = thread;
  const head = JSON.stringify({ id, roomId, resolved, position });
  const tail = JSON.stringify({ createdAt, ...more });
  return `{"thread":${head.slice(0, -1)},"comments":[${commentText}],${tail.slice(1)}}`;
}

/**
 * Adds `comments` to the comment count of a thread at commit and sets its time of the last change. The commit fails
 * with `invalid_request` if the thread would have more than `maxComments`. The transaction must have read the thread
 * record, so that it conflicts with a deletion of the thread.
 */
export function updateThreadStats(
  tx: Transaction,
  partition: string,
  at: string,
  comments: number,
  maxComments = Number.POSITIVE_INFINITY,
): void {
  tx.update(partition, STATS_KEY, (current) => {
    if (current === undefined) return undefined;
    const stats = parseThreadStats(current);
    const commentCount = stats.commentCount + comments;
    if (commentCount > maxComments)
      throw new CollabError('invalid_request', `A thread holds at most ${maxComments} comments`);
    return renderThreadStats({ commentCount, updatedAt: at > stats.updatedAt ? at : stats.updatedAt });
  });
}
