import { timestamp } from '../../lib/clock.ts';
import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import type { Comment } from '../../model/comment.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Entry, Transaction } from '../../ports/store.ts';
import { actorUserId } from '../access/access.ts';
import { removeAttachments } from '../files/attachments.ts';
import { deleteLocation } from './comment-location.ts';
import type { Actor } from '../access/actor.ts';
import { emitChange } from '../events/emit.ts';
import {
  COMMENT_PREFIX,
  DELETIONS_KEY,
  roomRecordsOf,
  STATS_KEY,
  THREAD_KEY,
  threadKey,
  threadRecordsOf,
} from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';
import { removeItemsAbout } from '../moderation/queue.ts';
import { touchRoom } from '../rooms/rooms.ts';
import { countUsage } from '../quotas/usage.ts';

/**
 * Serialises the changes and deletions of a thread within this process, which would otherwise conflict. Those of other
 * processes do, and run again. Keyed by partition.
 */
export const threadLocks = new KeyedLock();

/**
 * Removes a thread with all its comments in a transaction and emits `thread.deleted`. The transaction conflicts with
 * every other write to the thread: new comments change the stats, which it reads, and read the thread record, which it
 * deletes. `decidedId` is the item of the moderation queue whose rejection does so.
 */
export async function removeThread(
  tx: Transaction,
  actor: Actor,
  thread: ThreadRecord,
  now: number,
  decidedId?: string,
): Promise<void> {
  const environmentId = actor.environment.id;
  const partition = threadRecordsOf(environmentId, thread.id);
  await tx.get(partition, STATS_KEY);
  await removeItemsAbout(tx, actor, { roomId: thread.roomId, threadId: thread.id, decidedId }, now);
  await deleteComments(tx, environmentId, partition, await tx.range(partition, { prefix: COMMENT_PREFIX }));
  for (const key of [THREAD_KEY, STATS_KEY, DELETIONS_KEY]) tx.delete(partition, key);
  tx.delete(roomRecordsOf(environmentId, thread.roomId), threadKey(thread.createdAt, thread.id));
  touchRoom(tx, environmentId, thread.roomId, timestamp(now), -1, thread.resolved ? 0 : -1);
  emitThreadDeleted(tx, actor, thread, now);
}

/**
 * Deletes comments of a deleted thread with their files and index entries. `entries` are from the thread's partition.
 */
export async function deleteComments(
  tx: Transaction,
  environmentId: string,
  partition: string,
  entries: readonly Entry[],
): Promise<void> {
  const byAuthor = new Map<string, number>();
  for (const { key, value } of entries) {
    tx.delete(partition, key);
    const { userId, attachments } = parseRecord<Comment>(value);
    await removeAttachments(tx, environmentId, attachments);
    byAuthor.set(userId, (byAuthor.get(userId) ?? 0) + 1);
    deleteLocation(tx, environmentId, key);
  }
  for (const [userId, comments] of byAuthor) countUsage(tx, environmentId, userId, 'comments', -comments);
}

/** Emits `thread.deleted`. */
export function emitThreadDeleted(tx: Transaction, actor: Actor, { id, roomId }: ThreadRecord, now: number): void {
  const data = JSON.stringify({ threadId: id });
  emitChange(tx, actor.environment, {
    type: 'thread.deleted',
    at: now,
    roomId,
    threadId: id,
    userId: actorUserId(actor),
    via: actor.via,
    data,
  });
}
