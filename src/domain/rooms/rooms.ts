import { isDeepStrictEqual } from 'node:util';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { hasMetadata } from '../../model/metadata.ts';
import {
  inScope,
  presentRoom,
  type Room,
  RoomPatchSchema,
  type RoomRecord,
  type RoomStats,
  unusedRoom,
} from '../../model/room.ts';
import type { Transaction } from '../../ports/store.ts';
import { requireBackend, requireRead, requireWrite } from '../access/access.ts';
import { checkRoomId, checkMetadata } from '../input/bounds.ts';
import type { Actor, UserActor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import {
  type Filters,
  hasFilters,
  isUnfilteredFirstPage,
  type ListQuery,
  type Page,
  parseListQuery,
} from '../lists/list-query.ts';
import { addMembers } from '../lists/answer-text.ts';
import { MAX_PAGE_CHARS, readPage, type TextBound, type TextPage } from '../lists/paging.ts';
import { ROOM_KEY, roomKey, roomRecordsOf, roomsOf, STATS_KEY, unescapeId } from '../records/partitions.ts';
import { parseRecord, putRecord, readRecord } from '../records/record.ts';
import { roomTextWithHeld } from '../comments/held-view.ts';
import { threadList } from '../comments/thread-list.ts';
import { commentsText, threadPartition, type ThreadView } from '../comments/thread-view.ts';
import { ownHeld } from '../moderation/own-held.ts';
import { countWrite } from '../quotas/usage.ts';
import { InputSchema, validate } from '../input/validate.ts';

const roomPatch = new InputSchema(RoomPatchSchema);

interface RoomView {
  readonly room: Room;
  readonly text: string;
}

/** A page of the rooms that the actor has access to, newest first by default. Throws `invalid_cursor`. */
export async function listRooms(ctx: Context, actor: Actor, query: ListQuery): Promise<Page> {
  requireRead(actor);
  const environmentId = actor.environment.id;
  const isFiltered = actor.rooms !== null || hasFilters(query);
  return readPage(ctx.store, query, limitsOf(actor.environment).listHardCap, {
    partition: roomsOf(environmentId),
    prefix: '',
    isFiltered,
    load: async (entry) => {
      const view = await roomView(ctx, environmentId, unescapeId(entry.value));
      if (!isFiltered || view === null) return view;
      return inScope(actor.rooms, view.room.roomId) && matches(view.room, query.filters) ? view : null;
    },
    updatedAt: ({ room }) => room.updatedAt,
    text: ({ text }) => text,
  });
}

/** Options of `getRoom`. */
export interface RoomReadOptions {
  /** Whether to include the `comments` of each thread. */
  readonly includeComments: boolean;
  /** The query of the list of threads; all threads by default. */
  readonly query?: ListQuery | undefined;
  /**
   * Whether to return a room without threads (`unusedRoom`), and not to throw `room_not_found`, if nobody has used the
   * room yet.
   */
  readonly emptyIfUnused?: boolean;
  /** A bound above which the room is refused. Without it, the page ends at `MAX_PAGE_CHARS`. */
  readonly bound?: TextBound | undefined;
}

const allThreads = parseListQuery(new URLSearchParams(), 'threads');

/**
 * A room with a page of its threads, newest first by default: `{"room":…,"threads":[…]}`, with `nextCursor` if there
 * are more. A user also sees what they have written in it and moderators hold, with `status: "held"`, as far as it
 * fits: held threads are on the first page, beyond its `limit`. Throws `forbidden`, `invalid_request`,
 * `room_not_found`, `invalid_cursor`, `payload_too_large` for a thread that is longer than a page, and the error of
 * `bound`.
 */
export async function getRoom(
  ctx: Context,
  actor: Actor,
  roomId: string,
  { includeComments, query = allThreads, emptyIfUnused = false, bound }: RoomReadOptions,
): Promise<TextPage> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkRoomId(roomId, limits);
  const environmentId = actor.environment.id;
  const partition = roomRecordsOf(environmentId, roomId);
  const read = async (): Promise<TextPage> => {
    const view = await roomView(ctx, environmentId, roomId);
    if (view === null && !emptyIfUnused) throw roomNotFound();
    return readPage<ThreadView>(ctx.store, query, limits.listHardCap, {
      ...threadList(ctx, environmentId, partition, query),
      ...(includeComments ? { readText: withComments(ctx, environmentId) } : { text: ({ text }) => text }),
      bound,
      head: `{"room":${view?.text ?? JSON.stringify(unusedRoom(roomId))},"threads":`,
    });
  };
  // Read first: what is approved in between is in both, and not in neither.
  const held = (await ownHeld(ctx, actor)).filter((item) => item.roomId === roomId);
  const own = (page: TextPage): TextPage => {
    if (held.length === 0) return page;
    return {
      ...page,
      text: roomTextWithHeld(page.text, held, {
        addThreads: query.cursor === null,
        includeComments,
        maxChars: bound?.maxChars ?? MAX_PAGE_CHARS,
      }),
    };
  };
  if (!isUnfilteredFirstPage(query)) return own(await read());
  // Every change of a thread writes to the partition of its room in the same commit, so the cache depends on that one
  // only.
  const key =
    `room ${emptyIfUnused ? 'any' : 'used'} ${includeComments ? 'full' : 'brief'} ` +
    `${query.limit ?? limits.listHardCap} ${query.sort} ${query.order} ${bound?.maxChars ?? ''} ` +
    `${partition}`;
  // The error for a room that is too long is cached too, or each request would read up to the bound again.
  const result = await ctx.store.cached(key, [partition], () => read().catch(asTooLong));
  if (result instanceof CollabError) throw result;
  return own(result);
}

/**
 * Renders a thread with its comments; null if that is longer than `remaining` characters but fits a page of its own.
 */
function withComments(
  ctx: Context,
  environmentId: string,
): (view: ThreadView, remaining: number) => Promise<string | null> {
  return async ({ thread, text }, remaining) => {
    const comments = await commentsText(ctx, threadPartition(environmentId, thread.id), remaining - text.length);
    if (comments !== null) return addMembers(text, `"comments":${comments}`);
    if (remaining < MAX_PAGE_CHARS) return null;
    throw new CollabError(
      'payload_too_large',
      `The thread ${thread.id} with its comments is longer than an answer may be (${MAX_PAGE_CHARS} ` +
        'characters): leave out include=comments, and read them in pages with GET ' +
        '/threads/:threadId/comments?limit=100',
    );
  };
}

/** Returns the error for a text that is too long; throws any other error. */
function asTooLong(thrown: unknown): CollabError {
  if (thrown instanceof CollabError && thrown.code === 'payload_too_large') return thrown;
  throw thrown;
}

/**
 * Replaces the metadata of a room and returns `{"room":…}`. `input` is the parsed JSON body. Throws `forbidden`,
 * `invalid_request`, `room_not_found`.
 */
export async function patchRoom(ctx: Context, actor: Actor, roomId: string, input: unknown): Promise<string> {
  requireBackend(actor, 'write');
  requireWrite(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkRoomId(roomId, limits);
  const { metadata } = validate(roomPatch, input);
  checkMetadata(metadata, limits);
  const partition = roomRecordsOf(actor.environment.id, roomId);
  await ctx.store.transact(async (tx) => {
    const record = await requireRoom(tx, partition);
    if (isDeepStrictEqual(record.metadata, metadata)) return;
    const changed: RoomRecord = { ...record, metadata, updatedAt: timestamp(ctx.clock.now()) };
    putRecord(tx, partition, ROOM_KEY, changed);
  });
  const view = await roomView(ctx, actor.environment.id, roomId);
  if (view === null) throw roomNotFound();
  return `{"room":${view.text}}`;
}

/**
 * Checks that a user may join a room, and creates the room if necessary, except for a viewer, who may not create
 * anything. Throws `forbidden`, `invalid_request`, `rate_limited`.
 */
export async function enterRoom(ctx: Context, actor: UserActor, roomId: string): Promise<void> {
  requireRead(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  if (actor.role === 'viewer' || (await ctx.store.get(roomRecordsOf(id, roomId), ROOM_KEY)) !== undefined) return;
  await countWrite(ctx, actor);
  await ctx.store.transact(async (tx) => {
    const at = timestamp(ctx.clock.now());
    if (await ensureRoom(tx, id, roomId, at)) touchRoom(tx, id, roomId, at);
  });
}

/** The record of a room, read in the transaction. Throws `room_not_found`. */
export async function requireRoom(tx: Transaction, partition: string): Promise<RoomRecord> {
  const room = await readRecord<RoomRecord>(tx, partition, ROOM_KEY);
  if (room === undefined) throw roomNotFound();
  return room;
}

/**
 * Creates the room in a transaction unless it exists, and returns whether it did. If so, call `touchRoom` too: it
 * creates the stats.
 */
export async function ensureRoom(tx: Transaction, environmentId: string, roomId: string, at: string): Promise<boolean> {
  const partition = roomRecordsOf(environmentId, roomId);
  if ((await tx.get(partition, ROOM_KEY)) !== undefined) return false;
  const record: RoomRecord = { roomId, metadata: {}, createdAt: at, updatedAt: at };
  const key = roomKey(at, roomId);
  putRecord(tx, partition, ROOM_KEY, record);
  tx.put(roomsOf(environmentId), key, key.slice(key.indexOf('~') + 1));
  return true;
}

/**
 * Records activity in a room, at commit, and adds to its numbers of threads and open threads. Every change of a thread
 * or comment must call it: the write also invalidates the cached views of the room.
 */
export function touchRoom(
  tx: Transaction,
  environmentId: string,
  roomId: string,
  at: string,
  threads = 0,
  openThreads = 0,
): void {
  tx.update(roomRecordsOf(environmentId, roomId), STATS_KEY, (current) => {
    // Fast path for new comments, which change only the time.
    if (threads === 0 && openThreads === 0 && current !== undefined) return withLastActivity(current, at);
    const stats =
      current === undefined
        ? { threadCount: 0, openThreadCount: 0, lastActivityAt: at }
        : parseRecord<RoomStats>(current);
    const lastActivityAt = at > stats.lastActivityAt ? at : stats.lastActivityAt;
    return `{"threadCount":${stats.threadCount + threads},"openThreadCount":${stats.openThreadCount + openThreads},"lastActivityAt":"${lastActivityAt}"}`;
  });
}

/** The stored stats of a room with `lastActivityAt`, their last field, set to `at` if that is later. */
function withLastActivity(stats: string, at: string): string {
  const start = stats.lastIndexOf('"', stats.length - '"}'.length - 1) + 1;
  return at > stats.slice(start, -'"}'.length) ? `${stats.slice(0, start)}${at}"}` : stats;
}

function roomView(ctx: Context, environmentId: string, roomId: string): Promise<RoomView | null> {
  const partition = roomRecordsOf(environmentId, roomId);
  return ctx.store.cached(`view ${partition}`, [partition], async () => {
    const record = await readRecord<RoomRecord>(ctx.store, partition, ROOM_KEY);
    const stats = await readRecord<RoomStats>(ctx.store, partition, STATS_KEY);
    if (record === undefined || stats === undefined) return null;
    const room = presentRoom(record, stats);
    return { room, text: JSON.stringify(room) };
  });
}

const roomNotFound = (): CollabError => new CollabError('room_not_found', 'Room not found');

function matches(room: Room, { prefix, updatedSince, metadata }: Readonly<Filters>): boolean {
  if (!hasMetadata(room.metadata, metadata)) return false;
  return (
    (prefix === undefined || room.roomId.startsWith(prefix)) &&
    (updatedSince === undefined || room.updatedAt >= updatedSince)
  );
}
