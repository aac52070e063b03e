import Type from 'typebox';
import { CollabError } from '../errors.ts';
import { timestamp } from '../lib/clock.ts';
import { newId } from '../lib/ids.ts';
import { limitsOf } from '../model/environment.ts';
import type { Limits } from '../model/limits.ts';
import { type Position, presentThread, type Thread, ThreadCreateSchema, ThreadPatchSchema, type ThreadRecord, type ThreadStats } from '../model/thread.ts';
import { actingUser, requireAuthor, requireChange, requireRead, requireWrite } from './access.ts';
import { checkId, checkPosition } from './bounds.ts';
import { checkedDraft, type CommentDraft, commentOf } from './comment-draft.ts';
import { putComment } from './comments.ts';
import type { Actor, Context } from './context.ts';
import { emitChange } from './emit.ts';
import { type Idempotency, once, type Outcome } from './idempotency.ts';
import { type Filters, isPlain, type ListQuery, type Page } from './list-query.ts';
import { readPage } from './paging.ts';
import { roomOf, STATS_KEY, THREAD_KEY, THREAD_PREFIX, threadKey, threadOf } from './partitions.ts';
import { ensureRoom, touchRoom } from './rooms.ts';
import { removeThread, threadLocks } from './thread-removal.ts';
import { commentsText, requireReachOfThread, threadNotFound, threadPartition, threadPeople, threadView, threadViewOrNull } from './thread-view.ts';
import { requireKnownAuthor } from './users.ts';
import { InputSchema, validate } from './validate.ts';

const createByBackend = new InputSchema(ThreadCreateSchema);
const createByUser = new InputSchema(Type.Omit(ThreadCreateSchema, ['userId']));
const threadPatch = new InputSchema(ThreadPatchSchema);

/**
 * Starts a thread with its first comment, in a room that is made if it is new, and answers `{"thread":…}`. `input` is
 * the parsed JSON body. Throws `forbidden`, `invalid_request`, `unknown_user`, `id_taken`, `idempotency_key_reused`.
 */
export async function createThread(ctx: Context, actor: Actor, roomId: string, input: unknown, idempotency: Idempotency): Promise<Outcome> {
  requireWrite(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const { id: chosenId, position, first } = readThreadDraft(actor, input, limits);
  const environmentId = actor.environment.id;
  return once(ctx, actor.environment, idempotency, async (tx) => {
    await requireKnownAuthor(ctx, tx, actor, first.userId);
    if (chosenId !== undefined && (await tx.get(threadOf(environmentId, chosenId), THREAD_KEY)) !== undefined) {
      throw new CollabError('id_taken', `The id ${chosenId} is taken by another thread`);
    }
    const now = ctx.clock.now();
    const at = timestamp(now);
    await ensureRoom(tx, environmentId, roomId, at);
    const id = chosenId ?? newId('th_', now);
    const { userId, metadata } = first;
    const record: ThreadRecord = { id, roomId, resolved: false, position, metadata, userId, createdAt: at, updatedAt: at, resolvedAt: null, resolvedBy: null };
    const stats: ThreadStats = { commentCount: 1, updatedAt: at };
    const comment = commentOf({ ...first, id: undefined, metadata: {} }, id, now, at);
    const commentText = JSON.stringify(comment);
    const partition = threadOf(environmentId, id);
    tx.put(partition, THREAD_KEY, JSON.stringify(record));
    tx.put(partition, STATS_KEY, JSON.stringify(stats));
    tx.put(roomOf(environmentId, roomId), threadKey(at, id), id);
    putComment(tx, environmentId, comment, commentText, now, false);
    touchRoom(tx, environmentId, roomId, at, 1, 1);
    const thread = presentThread(record, stats);
    const data = `{"thread":${JSON.stringify(thread)},"comment":${commentText}}`;
    emitChange(tx, actor.environment, { type: 'thread.created', at: now, roomId, threadId: id, userId, via: actor.via, data });
    return { status: 201, body: renderCreated(thread, commentText) };
  });
}

/** The threads of a room, newest first unless asked otherwise; none for a room that doesn't exist. Throws `invalid_cursor`. */
export async function listThreads(ctx: Context, actor: Actor, roomId: string, query: ListQuery): Promise<Page> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkId('roomId', roomId, limits);
  const partition = roomOf(actor.environment.id, roomId);
  if (!isPlain(query)) return readThreads(ctx, actor, partition, query, limits);
  // Every change of a thread touches the partition of its room in the same commit, so that this one partition stands for all.
  const key = `threads ${query.limit ?? limits.listHardCap} ${query.sort} ${query.order} ${partition}`;
  return ctx.store.memo(key, [partition], async () => {
    const page = await readThreads(ctx, actor, partition, query, limits);
    return { text: Buffer.from(page.text), nextCursor: page.nextCursor };
  });
}

/** A thread with all its comments: `{"thread":…,"comments":[…]}`. Throws `forbidden`, `thread_not_found`. */
export async function getThread(ctx: Context, actor: Actor, threadId: string): Promise<string> {
  requireRead(actor);
  await requireReachOfThread(ctx, actor, threadId);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  return ctx.store.memo(`thread ${partition}`, [partition], async () => {
    const { text } = await threadView(ctx, environmentId, threadId);
    return `{"thread":${text},"comments":${await commentsText(ctx, partition)}}`;
  });
}

/** As `setResolved`, with the parsed JSON body `{resolved: boolean}`. Throws `invalid_request` as well. */
export async function patchThread(ctx: Context, actor: Actor, threadId: string, input: unknown): Promise<string> {
  requireChange(actor);
  await requireReachOfThread(ctx, actor, threadId);
  return setResolved(ctx, actor, threadId, validate(threadPatch, input).resolved);
}

/**
 * Resolves or reopens a thread and answers `{"threadId":…,"resolved":…}`. On a thread that is so already it changes
 * nothing and tells nobody. Throws `forbidden`, `thread_not_found`.
 */
export async function setResolved(ctx: Context, actor: Actor, threadId: string, resolved: boolean): Promise<string> {
  requireChange(actor);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  await threadLocks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const stored = await tx.get(partition, THREAD_KEY);
      if (stored === undefined) throw threadNotFound();
      const record = JSON.parse(stored) as ThreadRecord;
      requireChange(actor, record.roomId);
      if (record.resolved === resolved) return;
      const now = ctx.clock.now();
      const at = timestamp(now);
      const userId = actingUser(actor);
      const changed: ThreadRecord = { ...record, resolved, updatedAt: at, resolvedAt: resolved ? at : null, resolvedBy: resolved ? userId : null };
      tx.put(partition, THREAD_KEY, JSON.stringify(changed));
      touchRoom(tx, environmentId, record.roomId, at, 0, resolved ? -1 : 1);
      // Unguarded, or resolving a busy thread would never win against its new comments.
      const stats = await ctx.store.get(partition, STATS_KEY);
      const shown = presentThread(changed, stats === undefined ? { commentCount: 1, updatedAt: at } : (JSON.parse(stats) as ThreadStats));
      emitChange(tx, actor.environment, {
        type: resolved ? 'thread.resolved' : 'thread.reopened',
        at: now,
        roomId: record.roomId,
        threadId,
        userId,
        via: actor.via,
        data: JSON.stringify(shown),
      });
    }),
  );
  return JSON.stringify({ threadId, resolved });
}

/** Deletes a thread with all its comments and answers `{"deleted":true}`. Throws `forbidden`, `thread_not_found`. */
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
      await removeThread(tx, actor, record, ctx.clock.now());
    }),
  );
  return '{"deleted":true}';
}

interface ThreadDraft {
  readonly id: string | undefined;
  readonly position: Position | null;
  /** The first comment; its metadata are the thread's. */
  readonly first: CommentDraft;
}

function readThreadDraft(actor: Actor, input: unknown, limits: Limits): ThreadDraft {
  const fields = actor.kind === 'user' ? { ...validate(createByUser, input), userId: actor.userId } : validate(createByBackend, input);
  const first = checkedDraft(fields, limits);
  return { id: fields.id, first, position: fields.position === undefined ? null : checkPosition(fields.position, limits) };
}

/** The create response: the fields that the service names first, then what a thread has besides. */
function renderCreated(thread: Thread, commentText: string): string {
  const { id, roomId, resolved, position, createdAt, ...more } = thread;
  const head = JSON.stringify({ id, roomId, resolved, position });
  const tail = JSON.stringify({ createdAt, ...more });
  return `{"thread":${head.slice(0, -1)},"comments":[${commentText}],${tail.slice(1)}}`;
}

function readThreads(ctx: Context, actor: Actor, partition: string, query: ListQuery, limits: Limits): Promise<Page> {
  const environmentId = actor.environment.id;
  return readPage(ctx.store, query, limits.listHardCap, {
    partition,
    prefix: THREAD_PREFIX,
    load: (entry) => threadViewOrNull(ctx, environmentId, entry.value),
    matches: isPlain({ ...query, cursor: null }) ? null : ({ thread }) => matches(ctx, environmentId, thread, query.filters),
    updatedAt: ({ thread }) => thread.updatedAt,
    text: ({ text }) => text,
  });
}

async function matches(ctx: Context, environmentId: string, thread: Thread, filters: Readonly<Filters>): Promise<boolean> {
  const { resolved, userId, createdSince, updatedSince, metadata, participantId, mentions } = filters;
  if (resolved !== undefined && thread.resolved !== resolved) return false;
  if (userId !== undefined && thread.userId !== userId) return false;
  if (createdSince !== undefined && thread.createdAt < createdSince) return false;
  if (updatedSince !== undefined && thread.updatedAt < updatedSince) return false;
  if (metadata?.some(([key, value]) => !Object.hasOwn(thread.metadata, key) || String(thread.metadata[key]) !== value)) return false;
  if (participantId === undefined && mentions === undefined) return true;
  const people = await threadPeople(ctx, environmentId, thread.id);
  return (participantId === undefined || people.participants.has(participantId)) && (mentions === undefined || people.mentioned.has(mentions));
}
