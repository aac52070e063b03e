import { timestamp } from '../lib/clock.ts';
import { KeyedLock } from '../lib/keyed-lock.ts';
import type { ThreadRecord } from '../model/thread.ts';
import type { Transaction } from '../ports/store.ts';
import { actingUser } from './access.ts';
import { forgetPlace } from './comment-place.ts';
import type { Actor } from './context.ts';
import { emitChange } from './emit.ts';
import { COMMENT_PREFIX, DELETIONS_KEY, roomOf, STATS_KEY, THREAD_KEY, threadKey, threadOf } from './partitions.ts';
import { touchRoom } from './rooms.ts';

/** One resolve, reopen or deletion at a time per thread and process: together they would only conflict. Keyed by partition. */
export const threadLocks = new KeyedLock();

/**
 * Removes a thread with all its comments inside a transaction and emits `thread.deleted`. Excludes every other write to
 * the thread: creations change the stats that are read here, and read the record that is deleted.
 */
export async function removeThread(tx: Transaction, actor: Actor, thread: ThreadRecord, now: number): Promise<void> {
  const environmentId = actor.environment.id;
  const partition = threadOf(environmentId, thread.id);
  await tx.get(partition, STATS_KEY);
  for (const { key } of await tx.range(partition, { prefix: COMMENT_PREFIX })) {
    tx.delete(partition, key);
    forgetPlace(tx, environmentId, key);
  }
  for (const key of [THREAD_KEY, STATS_KEY, DELETIONS_KEY]) tx.delete(partition, key);
  tx.delete(roomOf(environmentId, thread.roomId), threadKey(thread.createdAt, thread.id));
  touchRoom(tx, environmentId, thread.roomId, timestamp(now), -1, thread.resolved ? 0 : -1);
  emitChange(tx, actor.environment, {
    type: 'thread.deleted',
    at: now,
    roomId: thread.roomId,
    threadId: thread.id,
    userId: actingUser(actor),
    via: actor.via,
    data: JSON.stringify({ threadId: thread.id }),
  });
}
