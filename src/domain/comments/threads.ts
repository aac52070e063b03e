import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import { limitsOf } from '../../model/environment.ts';
import type { EventType } from '../../model/event.ts';
import type { Limits } from '../../model/limits.ts';
import type { Metadata } from '../../model/metadata.ts';
import { parseThreadStats, type Position, presentThread, renderThreadStats, type Thread, ThreadCreateSchema, ThreadPatchSchema, type ThreadRecord, type ThreadStats } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { actingUserId, requireAuthor, requireChange, requireRead, requireWrite } from '../access/access.ts';
import { withAttachments } from '../files/attachments.ts';
import { checkId, checkMetadata, checkPosition } from '../input/bounds.ts';
import { validateCommentDraft, type CommentDraft, commentOf } from './comment-draft.ts';
import { newLocation } from './comment-location.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { type Idempotency, withIdempotency, type IdempotentAnswer } from '../idempotency.ts';
import { isUnfilteredFirstPage, type ListQuery, type Page } from '../lists/list-query.ts';
import { MAX_PAGE_CHARS, readPage, type TextBound } from '../lists/paging.ts';
import { NEWEST_KEY, roomRecordsOf, STATS_KEY, THREAD_KEY, threadKey, threadRecordsOf } from '../records/partitions.ts';
import { ensureRoom, touchRoom } from '../rooms/rooms.ts';
import { removeThread, threadLocks } from './thread-removal.ts';
import { nextTimeInRoom, nextTimeInThread, timeAfter } from './thread-time.ts';
import { threadList } from './thread-list.ts';
import { commentsText, requireThreadAccess, threadNotFound, threadPartition, threadView } from './thread-view.ts';
import { chargeUsage } from '../quotas/usage.ts';
import { requireKnownAuthor } from '../users/users.ts';
import { InputSchema, validate } from '../input/validate.ts';

const createByBackend = new InputSchema(ThreadCreateSchema);
const createByUser = new InputSchema(Type.Omit(ThreadCreateSchema, ['userId']));
const threadPatch = new InputSchema(ThreadPatchSchema);

/**
 * Creates a thread with its first comment, and its room if necessary, and returns `{"thread":…}`. `input` is the parsed JSON
 * body. Throws `forbidden`, `invalid_request`, `unknown_user`, `id_taken`, `idempotency_key_reused`.
 */
export async function createThread(ctx: Context, actor: Actor, roomId: string, input: unknown, idempotency: Idempotency): Promise<IdempotentAnswer> {
  requireWrite(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const { id: chosenId, position, first } = readThreadDraft(actor, input, limits);
  const environmentId = actor.environment.id;
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    await requireKnownAuthor(ctx, tx, actor, first.userId);
    if (chosenId !== undefined && (await threadExists(tx, threadRecordsOf(environmentId, chosenId)))) {
      throw new CollabError('id_taken', `The id ${chosenId} is taken by another thread`);
    }
    const now = await nextTimeInRoom(ctx, roomRecordsOf(environmentId, roomId));
    const at = timestamp(now);
    await ensureRoom(tx, environmentId, roomId, at);
    const id = chosenId ?? newId('th_', now);
    const { userId, metadata } = first;
    const record: ThreadRecord = { id, roomId, resolved: false, position, metadata, userId, createdAt: at, updatedAt: at, resolvedAt: null, resolvedBy: null };
    const stats: ThreadStats = { commentCount: 1, updatedAt: at };
    const location = newLocation(tx, environmentId, id, now, undefined);
    const comment = await withAttachments(tx, actor, commentOf({ ...first, metadata: {} }, location.id, id, at), first.attachmentIds);
    const commentText = JSON.stringify(comment);
    const partition = threadRecordsOf(environmentId, id);
    tx.put(partition, THREAD_KEY, JSON.stringify(record));
    tx.put(partition, STATS_KEY, renderThreadStats(stats));
    tx.put(roomRecordsOf(environmentId, roomId), threadKey(at, id), id);
    tx.put(roomRecordsOf(environmentId, roomId), NEWEST_KEY, id);
    tx.put(location.partition, location.key, commentText);
    chargeUsage(tx, actor, userId, 'comments', 1);
    touchRoom(tx, environmentId, roomId, at, 1, 1);
    const thread = presentThread(record, stats);
    const data = `{"thread":${JSON.stringify(thread)},"comment":${commentText}}`;
    emitChange(tx, actor.environment, { type: 'thread.created', at: now, roomId, threadId: id, userId, via: actor.via, data });
    return { status: 201, body: renderCreated(thread, commentText) };
  });
}

/** A page of the threads of a room, newest first by default; empty for an unknown room. Throws `forbidden`, `invalid_cursor`. */
export async function listThreads(ctx: Context, actor: Actor, roomId: string, query: ListQuery): Promise<Page> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const partition = roomRecordsOf(actor.environment.id, roomId);
  const read = () => readPage(ctx.store, query, limits.listHardCap, threadList(ctx, actor.environment.id, partition, query));
  if (!isUnfilteredFirstPage(query)) return read();
  // Every change of a thread writes to the partition of its room in the same commit, so the cache depends on that one only.
  const key = `threads ${query.limit ?? limits.listHardCap} ${query.sort} ${query.order} ${partition}`;
  return ctx.store.cached(key, [partition], async () => {
    const page = await read();
    return { text: Buffer.from(page.text), nextCursor: page.nextCursor };
  });
}

/** The bound of `GET /threads/:threadId`. */
const threadBound: TextBound = {
  maxChars: MAX_PAGE_CHARS,
  tooLong: () =>
    new CollabError('payload_too_large', `The thread with its comments is longer than an answer may be (${MAX_PAGE_CHARS} characters): read them in pages with GET /threads/:threadId/comments?limit=100`),
};

/**
 * A thread with all its comments: `{"thread":…,"comments":[…]}`. Throws `forbidden`, `thread_not_found`, and the error of
 * `bound`.
 */
export async function getThread(ctx: Context, actor: Actor, threadId: string, bound = threadBound): Promise<string> {
  requireRead(actor);
  await requireThreadAccess(ctx, actor, threadId);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  // A thread that is too long is cached as null, or each request would read up to the bound again.
  const whole = await ctx.store.cached(`thread ${bound.maxChars} ${partition}`, [partition], async () => {
    const { text } = await threadView(ctx, environmentId, threadId);
    const comments = await commentsText(ctx, partition, bound.maxChars - text.length);
    return comments === null ? null : `{"thread":${text},"comments":${comments}}`;
  });
  if (whole === null) throw bound.tooLong();
  return whole;
}

/**
 * Resolves or reopens a thread, replaces its metadata, or both, and returns `{"threadId":…,"resolved":…}`. `input` is the
 * parsed JSON body. A field that has the wanted value already is not changed. Throws `forbidden`, `invalid_request`,
 * `thread_not_found`.
 */
export async function patchThread(ctx: Context, actor: Actor, threadId: string, input: unknown): Promise<string> {
  requireChange(actor);
  await requireThreadAccess(ctx, actor, threadId);
  const { resolved, metadata } = validate(threadPatch, input);
  if (resolved === undefined && metadata === undefined) throw new CollabError('invalid_request', 'resolved is required, unless metadata is given');
  if (metadata !== undefined) checkMetadata(metadata, limitsOf(actor.environment));
  return changeThread(ctx, actor, threadId, { resolved, metadata });
}

/**
 * Resolves or reopens a thread and returns `{"threadId":…,"resolved":…}`. If the thread is in that state already, it changes
 * nothing and emits no event. Throws `forbidden`, `thread_not_found`.
 */
export function setResolved(ctx: Context, actor: Actor, threadId: string, resolved: boolean): Promise<string> {
  return changeThread(ctx, actor, threadId, { resolved });
}

interface ThreadChange {
  readonly resolved?: boolean | undefined;
  readonly metadata?: Metadata | undefined;
}

async function changeThread(ctx: Context, actor: Actor, threadId: string, change: ThreadChange): Promise<string> {
  requireChange(actor);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  const resolved = await threadLocks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const stored = await tx.get(partition, THREAD_KEY);
      if (stored === undefined) throw threadNotFound();
      const record = JSON.parse(stored) as ThreadRecord;
      requireChange(actor, record.roomId);
      if (change.metadata !== undefined) requireAuthor(actor, record.userId, 'thread');
      // Read outside the transaction, or resolving a busy thread would keep conflicting with its new comments.
      const stats = await ctx.store.get(partition, STATS_KEY);
      const { updatedAt } = stats === undefined ? record : parseThreadStats(stats);
      const now = timeAfter(ctx.clock, record.updatedAt, updatedAt);
      const { changed, types } = changedThread(record, change, actor, timestamp(now));
      if (types.length === 0) return record.resolved;
      tx.put(partition, THREAD_KEY, JSON.stringify(changed));
      const opened = Number(!changed.resolved) - Number(!record.resolved);
      touchRoom(tx, environmentId, record.roomId, changed.updatedAt, 0, opened);
      const thread = presentThread(changed, stats === undefined ? { commentCount: 1, updatedAt: changed.updatedAt } : parseThreadStats(stats));
      const data = JSON.stringify(thread);
      for (const type of types) {
        emitChange(tx, actor.environment, { type, at: now, roomId: record.roomId, threadId, userId: actingUserId(actor), via: actor.via, data });
      }
      return changed.resolved;
    }),
  );
  return JSON.stringify({ threadId, resolved });
}

/** A thread after a change, and the types of the events to emit: none if nothing changes. */
function changedThread(record: ThreadRecord, { resolved, metadata }: ThreadChange, actor: Actor, at: string): { changed: ThreadRecord; types: EventType[] } {
  const types: EventType[] = [];
  let changed = record;
  if (metadata !== undefined && !isDeepStrictEqual(metadata, record.metadata)) {
    changed = { ...changed, metadata, updatedAt: at };
    types.push('thread.updated');
  }
  if (resolved !== undefined && resolved !== record.resolved) {
    changed = { ...changed, resolved, updatedAt: at, resolvedAt: resolved ? at : null, resolvedBy: resolved ? actingUserId(actor) : null };
    types.push(resolved ? 'thread.resolved' : 'thread.reopened');
  }
  return { changed, types };
}

/** Deletes a thread with all its comments and returns `{"deleted":true}`. Throws `forbidden`, `thread_not_found`. */
export async function deleteThread(ctx: Context, actor: Actor, threadId: string): Promise<string> {
  requireChange(actor);
  const partition = threadPartition(actor.environment.id, threadId);
  await threadLocks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const stored = await tx.get(partition, THREAD_KEY);
      if (stored === undefined) throw threadNotFound();
      const record = JSON.parse(stored) as ThreadRecord;
      requireChange(actor, record.roomId);
      requireAuthor(actor, record.userId, 'thread');
      await removeThread(tx, actor, record, await nextTimeInThread(ctx, partition));
    }),
  );
  return '{"deleted":true}';
}

/** Whether the thread exists, or its comments do: those of a deleted room are removed later, in slices. */
async function threadExists(tx: Transaction, partition: string): Promise<boolean> {
  return (await tx.get(partition, THREAD_KEY)) !== undefined || (await tx.range(partition, { limit: 1 })).length > 0;
}

interface ThreadDraft {
  readonly id: string | undefined;
  readonly position: Position | null;
  /** The first comment. Its metadata become those of the thread. */
  readonly first: CommentDraft;
}

function readThreadDraft(actor: Actor, input: unknown, limits: Limits): ThreadDraft {
  const fields = actor.kind === 'user' ? { ...validate(createByUser, input), userId: actor.userId } : validate(createByBackend, input);
  const first = validateCommentDraft(fields, limits);
  return { id: fields.id, first, position: fields.position === undefined ? null : checkPosition(fields.position, limits) };
}

/** The response to a create: the fields that the API documents first, then the other fields of a thread. */
function renderCreated(thread: Thread, commentText: string): string {
  const { id, roomId, resolved, position, createdAt, ...more } = thread;
  const head = JSON.stringify({ id, roomId, resolved, position });
  const tail = JSON.stringify({ createdAt, ...more });
  return `{"thread":${head.slice(0, -1)},"comments":[${commentText}],${tail.slice(1)}}`;
}
