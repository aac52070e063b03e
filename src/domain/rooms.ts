import { isDeepStrictEqual } from 'node:util';
import { CollabError } from '../errors.ts';
import { timestamp } from '../lib/clock.ts';
import { limitsOf } from '../model/environment.ts';
import { hasMetadata } from '../model/metadata.ts';
import { inScope, presentRoom, type Room, RoomPatchSchema, type RoomRecord, type RoomStats } from '../model/room.ts';
import type { Transaction } from '../ports/store.ts';
import { requireBackend, requireChange, requireRead } from './access.ts';
import { checkId, checkMetadata } from './bounds.ts';
import type { Actor, Context, UserActor } from './context.ts';
import type { Filters, ListQuery, Page } from './list-query.ts';
import { readPage } from './paging.ts';
import { ROOM_KEY, roomKey, roomOf, roomsOf, STATS_KEY, THREAD_PREFIX, unescapeId } from './partitions.ts';
import { commentsText, threadPartition, threadViewOrNull } from './thread-view.ts';
import { InputSchema, validate } from './validate.ts';

const roomPatch = new InputSchema(RoomPatchSchema);

interface RoomView {
  readonly room: Room;
  readonly text: string;
}

/** The rooms that the credential reaches, newest first unless asked otherwise. Throws `invalid_cursor`. */
export async function listRooms(ctx: Context, actor: Actor, query: ListQuery): Promise<Page> {
  requireRead(actor);
  const environmentId = actor.environment.id;
  const filtered = actor.rooms !== null || Object.keys(query.filters).length > 0;
  return readPage(ctx.store, query, limitsOf(actor.environment).listHardCap, {
    partition: roomsOf(environmentId),
    prefix: '',
    load: (entry) => roomView(ctx, environmentId, unescapeId(entry.value)),
    matches: filtered ? ({ room }) => inScope(actor.rooms, room.roomId) && matches(room, query.filters) : null,
    updatedAt: ({ room }) => room.updatedAt,
    text: ({ text }) => text,
  });
}

/**
 * A room with its threads, newest first: `{"room":…,"threads":[…]}`; with `includeComments` each thread has its
 * `comments`. Throws `room_not_found`.
 */
export async function getRoom(ctx: Context, actor: Actor, roomId: string, { includeComments }: { includeComments: boolean }): Promise<string> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const environmentId = actor.environment.id;
  const partition = roomOf(environmentId, roomId);
  // Every change of a thread touches the partition of its room in the same commit, so that this one partition stands for all.
  return ctx.store.memo(`room ${includeComments ? 'full' : 'brief'} ${limits.listHardCap} ${partition}`, [partition], async () => {
    const view = await roomView(ctx, environmentId, roomId);
    if (view === null) throw roomNotFound();
    const index = await ctx.store.range(partition, { prefix: THREAD_PREFIX, reverse: true, limit: limits.listHardCap });
    const threads: string[] = [];
    for (const { value: threadId } of index) {
      const thread = await threadViewOrNull(ctx, environmentId, threadId);
      if (thread === null) continue;
      const comments = includeComments ? await commentsText(ctx, threadPartition(environmentId, threadId)) : null;
      threads.push(comments === null ? thread.text : `${thread.text.slice(0, -1)},"comments":${comments}}`);
    }
    return `{"room":${view.text},"threads":[${threads.join(',')}]}`;
  });
}

/** Replaces the metadata of a room and answers `{"room":…}`. `input` is the parsed JSON body. Throws `forbidden`, `invalid_request`, `room_not_found`. */
export async function patchRoom(ctx: Context, actor: Actor, roomId: string, input: unknown): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const { metadata } = validate(roomPatch, input);
  checkMetadata(metadata, limits);
  const partition = roomOf(actor.environment.id, roomId);
  await ctx.store.transact(async (tx) => {
    const record = await requireRoom(tx, partition);
    if (isDeepStrictEqual(record.metadata, metadata)) return;
    const changed: RoomRecord = { ...record, metadata, updatedAt: timestamp(ctx.clock.now()) };
    tx.put(partition, ROOM_KEY, JSON.stringify(changed));
  });
  const view = await roomView(ctx, actor.environment.id, roomId);
  if (view === null) throw roomNotFound();
  return `{"room":${view.text}}`;
}

/**
 * Lets somebody into a room, which is made if it is new, unless by a viewer, who changes nothing. Throws `forbidden`,
 * `invalid_request`.
 */
export async function enterRoom(ctx: Context, actor: UserActor, roomId: string): Promise<void> {
  requireRead(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  if (actor.role === 'viewer' || (await ctx.store.get(roomOf(id, roomId), ROOM_KEY)) !== undefined) return;
  await ctx.store.transact(async (tx) => {
    const at = timestamp(ctx.clock.now());
    if (await ensureRoom(tx, id, roomId, at)) touchRoom(tx, id, roomId, at);
  });
}

/** The record of a room, guarded. Throws `room_not_found`. */
export async function requireRoom(tx: Transaction, partition: string): Promise<RoomRecord> {
  const stored = await tx.get(partition, ROOM_KEY);
  if (stored === undefined) throw roomNotFound();
  return JSON.parse(stored) as RoomRecord;
}

/** Makes the room inside a transaction if it is new, and says whether it was. Then call `touchRoom` as well: it makes the stats. */
export async function ensureRoom(tx: Transaction, environmentId: string, roomId: string, at: string): Promise<boolean> {
  const partition = roomOf(environmentId, roomId);
  if ((await tx.get(partition, ROOM_KEY)) !== undefined) return false;
  const record: RoomRecord = { roomId, metadata: {}, createdAt: at, updatedAt: at };
  const key = roomKey(at, roomId);
  tx.put(partition, ROOM_KEY, JSON.stringify(record));
  tx.put(roomsOf(environmentId), key, key.slice(key.indexOf('~') + 1));
  return true;
}

/**
 * Notes activity in a room, and how its numbers of threads change. Every change of a thread or comment calls it, also
 * because it is what tells a memo of the room that one of its threads changed.
 */
export function touchRoom(tx: Transaction, environmentId: string, roomId: string, at: string, threads = 0, openThreads = 0): void {
  tx.update(roomOf(environmentId, roomId), STATS_KEY, (current) => {
    // Comments of one moment share one commit: all but the first find the room as they would leave it.
    if (threads === 0 && openThreads === 0 && current?.endsWith(`"${at}"}`) === true) return current;
    const stats = current === undefined ? { threadCount: 0, openThreadCount: 0, lastActivityAt: at } : (JSON.parse(current) as RoomStats);
    const lastActivityAt = at > stats.lastActivityAt ? at : stats.lastActivityAt;
    return `{"threadCount":${stats.threadCount + threads},"openThreadCount":${stats.openThreadCount + openThreads},"lastActivityAt":"${lastActivityAt}"}`;
  });
}

function roomView(ctx: Context, environmentId: string, roomId: string): Promise<RoomView | null> {
  const partition = roomOf(environmentId, roomId);
  return ctx.store.memo(`view ${partition}`, [partition], async () => {
    const record = await ctx.store.get(partition, ROOM_KEY);
    const stats = await ctx.store.get(partition, STATS_KEY);
    if (record === undefined || stats === undefined) return null;
    const room = presentRoom(JSON.parse(record) as RoomRecord, JSON.parse(stats) as RoomStats);
    return { room, text: JSON.stringify(room) };
  });
}

const roomNotFound = (): CollabError => new CollabError('room_not_found', 'Room not found');

function matches(room: Room, { prefix, updatedSince, metadata }: Readonly<Filters>): boolean {
  if (!hasMetadata(room.metadata, metadata)) return false;
  return (prefix === undefined || room.roomId.startsWith(prefix)) && (updatedSince === undefined || room.updatedAt >= updatedSince);
}
