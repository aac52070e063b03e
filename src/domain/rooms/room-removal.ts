import { DELETED } from '../deleted.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { AuditActor } from '../../model/environments/audit.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { Via } from '../../model/event.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Entry, Transaction } from '../../ports/store.ts';
import { requireBackend, requireChange } from '../access/access.ts';
import { checkRoomId } from '../input/bounds.ts';
import { type Actor, operatorActor } from '../access/actor.ts';
import { auditActorOf, appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { environmentById } from '../environments/environments.ts';
import { removeItemsAbout } from '../moderation/queue.ts';
import { removeState } from './shared-state.ts';
import {
  COMMENT_PREFIX,
  DELETIONS_KEY,
  escapeId,
  NEWEST_KEY,
  removalsOf,
  ROOM_KEY,
  roomKey,
  roomRecordsOf,
  roomsOf,
  STATS_KEY,
  THREAD_KEY,
  THREAD_PREFIX,
  threadRecordsOf,
} from '../records/partitions.ts';
import { putRecord, readRecord, readRecords } from '../records/record.ts';
import { requireRoom, touchRoom } from './rooms.ts';
import { deleteComments, emitThreadDeleted } from '../comments/thread-removal.ts';

/** Ids of threads of a deleted room. Their comments are unreachable and still to be removed. */
type ThreadRemoval = readonly string[];

/** The deletion of a room of which some threads are deleted: it still exists. */
interface UnfinishedDeletion {
  readonly roomId: string;
  readonly via: Via;
  readonly by: AuditActor;
  /** Threads deleted so far. */
  readonly threads: number;
  /** Milliseconds since the epoch of the last commit. */
  readonly at: number;
}

/** What `removalsOf` contains. */
type RoomRemoval = ThreadRemoval | UnfinishedDeletion;

/**
 * Threads deleted in one transaction. A commit of the store is bounded: a thread needs 450 bytes, and 2 500 with the
 * longest ids.
 */
const THREADS_PER_COMMIT = 2_000;
/** Threads in one removal record. */
const THREADS_PER_REMOVAL = 500;
/** Comments removed in one transaction. */
const SLICE = 500;
/** A deletion without a commit for so long, in milliseconds, was interrupted. */
const INTERRUPTED_MS = 60_000;

const isDeletion = (removal: RoomRemoval): removal is UnfinishedDeletion => !Array.isArray(removal);
const deletionKey = (roomId: string): string => `room/${escapeId(roomId)}`;

/**
 * Deletes a room with its threads and its shared state, emits `thread.deleted` for every thread, and returns
 * `{"deleted":true}`. One commit makes up to 2 000 threads unreachable. A room with more loses its threads in several
 * commits, oldest first, and exists until the last one; `sweepRemovals` continues if the server ends in between.
 * `sweepRemovals` removes the comments afterwards, in slices. The next thread in the room creates it again. Throws
 * `forbidden`, `invalid_request`, `room_not_found`.
 */
export async function deleteRoom(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const deletion: UnfinishedDeletion = {
    roomId,
    via: actor.via,
    by: auditActorOf(ctx, actor),
    threads: 0,
    at: ctx.clock.now(),
  };
  const partition = roomRecordsOf(actor.environment.id, roomId);
  const finished = await ctx.store.transact(async (tx) => {
    await requireRoom(tx, partition);
    return deleteThreads(ctx, tx, actor, deletion);
  });
  if (!finished) await continueDeletion(ctx, actor, roomId);
  return DELETED;
}

/** Completes the deletion of a room, unless another process has done so. */
async function continueDeletion(ctx: Context, actor: Actor, roomId: string): Promise<void> {
  for (let finished = false; !finished;) {
    finished = await ctx.store.transact(async (tx) => {
      const removals = removalsOf(actor.environment.id);
      const deletion = await readRecord<UnfinishedDeletion>(tx, removals, deletionKey(roomId));
      return deletion === undefined || deleteThreads(ctx, tx, actor, deletion);
    });
  }
}

/** Deletes the oldest threads of a room, and with the last ones the room itself. Returns whether it did that. */
async function deleteThreads(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  deletion: UnfinishedDeletion,
): Promise<boolean> {
  const environmentId = actor.environment.id;
  const { roomId } = deletion;
  const partition = roomRecordsOf(environmentId, roomId);
  const removals = removalsOf(environmentId);
  const now = ctx.clock.now();
  const oldest = (): Promise<Entry[]> => tx.range(partition, { prefix: THREAD_PREFIX, limit: THREADS_PER_COMMIT + 1 });
  let entries = await oldest();
  if (entries.length <= THREADS_PER_COMMIT) {
    // Read before the threads, so that the last commit conflicts with new ones: a range alone does not. All commits
    // conflict with changes of existing threads by their records.
    await tx.get(partition, NEWEST_KEY);
    entries = await oldest();
  }
  const isLast = entries.length <= THREADS_PER_COMMIT;
  const removed: string[] = [];
  let open = 0;
  for (const { key, value: threadId } of entries.slice(0, THREADS_PER_COMMIT)) {
    tx.delete(partition, key);
    const thread = await readRecord<ThreadRecord>(tx, threadRecordsOf(environmentId, threadId), THREAD_KEY);
    if (thread === undefined) continue;
    for (const name of [THREAD_KEY, STATS_KEY, DELETIONS_KEY])
      tx.delete(threadRecordsOf(environmentId, threadId), name);
    emitThreadDeleted(tx, actor, thread, now);
    removed.push(threadId);
    if (!thread.resolved) open++;
  }
  await removeItemsAbout(tx, actor, { roomId }, now);
  for (let from = 0; from < removed.length; from += THREADS_PER_REMOVAL) {
    const removal: ThreadRemoval = removed.slice(from, from + THREADS_PER_REMOVAL);
    putRecord(tx, removals, newId('rm_', now), removal);
  }
  const threads = deletion.threads + removed.length;
  if (!isLast) {
    touchRoom(tx, environmentId, roomId, timestamp(now), -removed.length, -open);
    putRecord(tx, removals, deletionKey(roomId), { ...deletion, threads, at: now } satisfies UnfinishedDeletion);
    return false;
  }
  tx.delete(removals, deletionKey(roomId));
  await deleteRecords(tx, actor, roomId, now);
  await appendAuditRecord(ctx, tx, environmentId, {
    action: 'room.delete',
    target: { kind: 'room', id: roomId },
    details: { threads },
    actor: deletion.by,
  });
  return true;
}

/** Deletes the records of a room without threads. */
async function deleteRecords(tx: Transaction, actor: Actor, roomId: string, now: number): Promise<void> {
  const environmentId = actor.environment.id;
  const partition = roomRecordsOf(environmentId, roomId);
  const { createdAt } = await requireRoom(tx, partition);
  await removeState(tx, actor, roomId, now);
  for (const name of [ROOM_KEY, STATS_KEY, NEWEST_KEY]) tx.delete(partition, name);
  tx.delete(roomsOf(environmentId), roomKey(createdAt, roomId));
}

/** Whether `sweepRemovals` has anything to do. Cheap: nothing is read from the store until a room is deleted. */
export function hasRemovals({ store }: Context, environmentId: string): Promise<boolean> {
  const partition = removalsOf(environmentId);
  return store.cached(`removals ${partition}`, [partition], async () => (await store.range(partition)).length > 0);
}

/**
 * Completes the deletions of rooms that were interrupted, removes the comments of the threads of deleted rooms, and
 * returns their number. For the background worker.
 */
export async function sweepRemovals(ctx: Context, environmentId: string): Promise<number> {
  let removed = 0;
  for (const { key, value: removal } of await readRecords<RoomRemoval>(ctx.store, removalsOf(environmentId))) {
    if (isDeletion(removal)) {
      if (ctx.clock.now() - removal.at < INTERRUPTED_MS) continue;
      const actor = { ...operatorActor(await environmentById(ctx, environmentId)), via: removal.via };
      await continueDeletion(ctx, actor, removal.roomId);
      continue;
    }
    for (const threadId of removal) removed += await removeComments(ctx, environmentId, threadId);
    await ctx.store.transact((tx) => Promise.resolve(tx.delete(removalsOf(environmentId), key)));
  }
  return removed;
}

async function removeComments(ctx: Context, environmentId: string, threadId: string): Promise<number> {
  const partition = threadRecordsOf(environmentId, threadId);
  for (let removed = 0; ;) {
    const count = await ctx.store.transact(async (tx) => {
      const entries = await tx.range(partition, { prefix: COMMENT_PREFIX, limit: SLICE });
      await deleteComments(tx, environmentId, partition, entries);
      return entries.length;
    });
    removed += count;
    if (count < SLICE) return removed;
  }
}
