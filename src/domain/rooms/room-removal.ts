import { newId } from '../../lib/ids.ts';
import { limitsOf } from '../../model/environment.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import { requireBackend, requireChange } from '../access/access.ts';
import { checkRoomId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import { auditActorOf, recordAct } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { removeItemsAbout } from '../moderation/queue.ts';
import { removeState } from './p2p-state.ts';
import { COMMENT_PREFIX, DELETIONS_KEY, NEWEST_KEY, removalsOf, ROOM_KEY, roomKey, roomRecordsOf, roomsOf, STATS_KEY, THREAD_KEY, THREAD_PREFIX, threadRecordsOf } from '../records/partitions.ts';
import { requireRoom } from './rooms.ts';
import { deleteComments, emitThreadDeleted } from '../comments/thread-removal.ts';

/** Ids of threads of a deleted room. Their comments are unreachable and still to be removed. */
type RoomRemoval = readonly string[];

/** Threads in one removal record. */
const THREADS_PER_REMOVAL = 500;
/** Comments removed in one transaction. */
const SLICE = 500;

/**
 * Deletes a room with its threads and its shared state, emits `thread.deleted` for every thread, and returns
 * `{"deleted":true}`. One commit makes all of it unreachable; `sweepRemovals` removes the comments afterwards, in slices. The
 * next thread in the room creates it again. Throws `forbidden`, `invalid_request`, `room_not_found`.
 */
export async function deleteRoom(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const environmentId = actor.environment.id;
  const partition = roomRecordsOf(environmentId, roomId);
  await ctx.store.transact(async (tx) => {
    const room = await requireRoom(tx, partition);
    // Read so that the transaction conflicts with new threads. It conflicts with changes of existing threads by their records.
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
    await removeItemsAbout(tx, environmentId, { roomId });
    await removeState(tx, actor, roomId, now);
    for (const name of [ROOM_KEY, STATS_KEY, NEWEST_KEY]) tx.delete(partition, name);
    tx.delete(roomsOf(environmentId), roomKey(room.createdAt, roomId));
    for (let from = 0; from < removed.length; from += THREADS_PER_REMOVAL) {
      const removal: RoomRemoval = removed.slice(from, from + THREADS_PER_REMOVAL);
      tx.put(removalsOf(environmentId), newId('rm_', now), JSON.stringify(removal));
    }
    const target = { kind: 'room', id: roomId } as const;
    await recordAct(ctx, tx, environmentId, { action: 'room.delete', target, details: { threads: removed.length }, actor: auditActorOf(ctx, actor) });
  });
  return '{"deleted":true}';
}

/** Removes the comments of the threads of deleted rooms, and returns their number. For the background worker. */
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
