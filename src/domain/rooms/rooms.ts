import { isDeepStrictEqual } from 'node:util';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environment.ts';
import { hasMetadata } from '../../model/metadata.ts';
import { inScope, presentRoom, type Room, RoomPatchSchema, type RoomRecord, type RoomStats } from '../../model/room.ts';
import type { Transaction } from '../../ports/store.ts';
import { requireBackend, requireChange, requireRead } from '../access/access.ts';
import { checkId, checkMetadata } from '../input/bounds.ts';
import type { Actor, UserActor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { type Filters, hasFilters, isUnfilteredFirstPage, type ListQuery, type Page, parseListQuery } from '../lists/list-query.ts';
import { MAX_PAGE_CHARS, readPage, type TextBound, type TextPage } from '../lists/paging.ts';
import { ROOM_KEY, roomKey, roomRecordsOf, roomsOf, STATS_KEY, unescapeId } from '../records/partitions.ts';
import { threadList } from '../comments/thread-list.ts';
import { commentsText, threadPartition, type ThreadView } from '../comments/thread-view.ts';
import { countWrite } from '../quotas/usage.ts';
import { InputSchema, validate } from '../input/validate.ts';

const roomPatch = new InputSchema(RoomPatchSchema);

interface RoomView {
  readonly room: Room;
  readonly text: string;
}

/** The rooms that the credential reaches, newest first unless asked otherwise. Throws `invalid_cursor`. */
export async function listRooms(ctx: Context, actor: Actor, query: ListQuery): Promise<Page> {
  requireRead(actor);
  const environmentId = actor.environment.id;
  const filtered = actor.rooms !== null || hasFilters(query);
  return readPage(ctx.store, query, limitsOf(actor.environment).listHardCap, {
    partition: roomsOf(environmentId),
    prefix: '',
    load: (entry) => roomView(ctx, environmentId, unescapeId(entry.value)),
    matches: filtered ? ({ room }) => inScope(actor.rooms, room.roomId) && matches(room, query.filters) : null,
    updatedAt: ({ room }) => room.updatedAt,
    text: ({ text }) => text,
  });
}

/** What of a room is read. */
export interface RoomReadOptions {
  /** Whether each thread has its `comments`. */
  readonly includeComments: boolean;
  /** Which threads, as a list of them has it; all when absent. */
  readonly query?: ListQuery | undefined;
  /** Refuses what would be longer. When absent, the page ends at `MAX_PAGE_CHARS`. */
  readonly bound?: TextBound | undefined;
}

const allThreads = parseListQuery(new URLSearchParams(), 'threads');

/**
 * A room with a page of its threads, newest first unless asked otherwise: `{"room":…,"threads":[…]}` with `nextCursor`
 * when more remain. Throws `room_not_found`, `invalid_cursor`, `payload_too_large` for a thread that no page can hold,
 * and the refusal of `bound`.
 */
export async function getRoom(ctx: Context, actor: Actor, roomId: string, { includeComments, query = allThreads, bound }: RoomReadOptions): Promise<TextPage> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const environmentId = actor.environment.id;
  const partition = roomRecordsOf(environmentId, roomId);
  const read = async (): Promise<TextPage> => {
    const view = await roomView(ctx, environmentId, roomId);
    if (view === null) throw roomNotFound();
    const list = threadList(ctx, environmentId, partition, query);
    const whole = includeComments ? { ...list, text: withComments(ctx, environmentId) } : list;
    return readPage(ctx.store, query, limits.listHardCap, { ...whole, bound, head: `{"room":${view.text},"threads":` });
  };
  if (!isUnfilteredFirstPage(query)) return read();
  // Every change of a thread touches the partition of its room in the same commit, so that this one partition stands for all.
  const key = `room ${includeComments ? 'full' : 'brief'} ${query.limit ?? limits.listHardCap} ${query.sort} ${query.order} ${bound?.maxChars ?? ''} ${partition}`;
  // That a room is too long is remembered too, or each request would read up to the bound again.
  const found = await ctx.store.cached(key, [partition], () => read().catch(asTooLong));
  if (found instanceof CollabError) throw found;
  return found;
}

function withComments(ctx: Context, environmentId: string): (view: ThreadView, left: number) => Promise<string | null> {
  return async ({ thread, text }, left) => {
    const comments = await commentsText(ctx, threadPartition(environmentId, thread.id), left - text.length);
    if (comments !== null) return `${text.slice(0, -1)},"comments":${comments}}`;
    if (left < MAX_PAGE_CHARS) return null;
    throw new CollabError('payload_too_large', `The thread ${thread.id} with its comments is longer than an answer may be (${MAX_PAGE_CHARS} characters): leave out include=comments, and read them in pages with GET /threads/:threadId/comments?limit=100`);
  };
}

/** The refusal of a text that would be too long, as a value; throws everything else. */
function asTooLong(thrown: unknown): CollabError {
  if (thrown instanceof CollabError && thrown.code === 'payload_too_large') return thrown;
  throw thrown;
}

/** Replaces the metadata of a room and answers `{"room":…}`. `input` is the parsed JSON body. Throws `forbidden`, `invalid_request`, `room_not_found`. */
export async function patchRoom(ctx: Context, actor: Actor, roomId: string, input: unknown): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const { metadata } = validate(roomPatch, input);
  checkMetadata(metadata, limits);
  const partition = roomRecordsOf(actor.environment.id, roomId);
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
 * `invalid_request`, `rate_limited`.
 */
export async function enterRoom(ctx: Context, actor: UserActor, roomId: string): Promise<void> {
  requireRead(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  if (actor.role === 'viewer' || (await ctx.store.get(roomRecordsOf(id, roomId), ROOM_KEY)) !== undefined) return;
  countWrite(ctx, actor);
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
  const partition = roomRecordsOf(environmentId, roomId);
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
  tx.update(roomRecordsOf(environmentId, roomId), STATS_KEY, (current) => {
    // Every new comment comes here, and changes the time alone.
    if (threads === 0 && openThreads === 0 && current !== undefined) return withLastActivity(current, at);
    const stats = current === undefined ? { threadCount: 0, openThreadCount: 0, lastActivityAt: at } : (JSON.parse(current) as RoomStats);
    const lastActivityAt = at > stats.lastActivityAt ? at : stats.lastActivityAt;
    return `{"threadCount":${stats.threadCount + threads},"openThreadCount":${stats.openThreadCount + openThreads},"lastActivityAt":"${lastActivityAt}"}`;
  });
}

/** Stored stats of a room, which end with the time of the last activity, with `at` where that is later. */
function withLastActivity(stats: string, at: string): string {
  const start = stats.lastIndexOf('"', stats.length - '"}'.length - 1) + 1;
  return at > stats.slice(start, -'"}'.length) ? `${stats.slice(0, start)}${at}"}` : stats;
}

function roomView(ctx: Context, environmentId: string, roomId: string): Promise<RoomView | null> {
  const partition = roomRecordsOf(environmentId, roomId);
  return ctx.store.cached(`view ${partition}`, [partition], async () => {
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
