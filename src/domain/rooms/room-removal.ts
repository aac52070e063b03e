import { newId } from '../../lib/ids.ts';
import { limitsOf } from '../../model/environment.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import { requireBackend, requireChange } from '../access/access.ts';
import { checkId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { removeState } from './p2p-state.ts';
import { COMMENT_PREFIX, DELETIONS_KEY, NEWEST_KEY, removalsOf, ROOM_KEY, roomKey, roomRecordsOf, roomsOf, STATS_KEY, THREAD_KEY, THREAD_PREFIX, threadRecordsOf } from '../records/partitions.ts';
import { requireRoom } from './rooms.ts';
import { deleteComments, emitThreadDeleted } from '../comments/thread-removal.ts';

/** Threads of a deleted room whose comments nobody can reach any more, and that are still to be removed. */
type RoomRemoval = readonly string[];

/** Threads in one record of what is to be removed. */
const THREADS_PER_REMOVAL = 500;
/** Comments removed in one transaction. */
const SLICE = 500;

/**
 * Deletes a room with its threads, its shared state and, for every thread, a `thread.deleted`, and answers
 * `{"deleted":true}`. All of it is gone at once for every reader; `sweepRemovals` removes the comments themselves
 * afterwards, in slices. The room comes to life again, empty, by the next thread in it. Throws `forbidden`, `room_not_found`.
 */
export async function deleteRoom(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const environmentId = actor.environment.id;
  const partition = roomRecordsOf(environmentId, roomId);
  await ctx.store.transact(async (tx) => {
    const room = await requireRoom(tx, partition);
    // Guards against a thread made meanwhile. What happens in the threads that are there, their records guard against.
    await tx.get(partition, NEWEST_KEY);
    const now = ctx.clock.now();
    const removed: string[] = [];
    for (const { key, value: threadId } of await tx.range(partition, { prefix: THREAD_PREFIX })) {
      tx.delete(partition, key);
      const stored = await tx.get(threadRecordsOf(environmentId, threadId), THREAD_KEY);
      if (stored === undefined) continue;
      for (const name of [THREAD_KEY, STATS_KEY, DELETIONS_KEY]) tx.delete(threadRecordsOf(environmentId, threadId), name);
      emitThreadDeleted(tx, actor, JSON.parse(stored) as ThreadRecord, now);
      removed.push(threadId);
    }
    await removeState(tx, actor, roomId, now);
    for (const name of [ROOM_KEY, STATS_KEY, NEWEST_KEY]) tx.delete(partition, name);
    tx.delete(roomsOf(environmentId), roomKey(room.createdAt, roomId));
    for (let from = 0; from < removed.length; from += THREADS_PER_REMOVAL) {
      const removal: RoomRemoval = removed.slice(from, from + THREADS_PER_REMOVAL);
      tx.put(removalsOf(environmentId), newId('rm_', now), JSON.stringify(removal));
    }
  });
  return '{"deleted":true}';
}

/** Removes the comments of threads that went with their rooms. Returns how many. For the background worker. */
export async function sweepRemovals(ctx: Context, environmentId: string): Promise<number> {
  let removed = 0;
  for (const { key, value } of await ctx.store.range(removalsOf(environmentId))) {
    for (const threadId of JSON.parse(value) as RoomRemoval) removed += await removeComments(ctx, environmentId, threadId);
    await ctx.store.transact((tx) => Promise.resolve(tx.delete(removalsOf(environmentId), key)));
  }
  return removed;
}

async function removeComments(ctx: Context, environmentId: string, threadId: string): Promise<number> {
  const partition = threadRecordsOf(environmentId, threadId);
  for (let removed = 0; ; ) {
    const count = await ctx.store.transact(async (tx) => {
      const entries = await tx.range(partition, { prefix: COMMENT_PREFIX, limit: SLICE });
      await deleteComments(tx, environmentId, partition, entries);
      return entries.length;
    });
    removed += count;
    if (count < SLICE) return removed;
  }
}
