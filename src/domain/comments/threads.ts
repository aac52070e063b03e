import { isDeepStrictEqual } from 'node:util';
import * as Type from 'typebox';
import { DELETED } from '../deleted.ts';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import type { AuditDetails } from '../../model/environments/audit.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { EventType } from '../../model/event.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { Metadata } from '../../model/metadata.ts';
import {
  parseThreadStats,
  type Position,
  presentThread,
  ThreadCreateSchema,
  type ThreadPatch,
  ThreadPatchSchema,
  type ThreadRecord,
} from '../../model/thread.ts';
import {
  actorUserId,
  requireAuthor,
  requireChange,
  requireRead,
  requireRoomAccess,
  requireWrite,
} from '../access/access.ts';
import { withAttachments } from '../files/attachments.ts';
import { checkRoomId, checkMetadata, checkPosition } from '../input/bounds.ts';
import { commentOf, type ThreadDraft, validateCommentDraft } from './comment-draft.ts';
import { filterNewThread, filterResolution } from './comment-filters.ts';
import { newLocation } from './comment-location.ts';
import { insertThread, renderCreatedThread } from './comment-writing.ts';
import { heldThreadText, threadTextWithHeld } from './held-view.ts';
import { newThreadRecord } from './new-thread.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { filtersFor } from '../filtering.ts';
import { type Idempotency, withIdempotency, type IdempotentResponse } from '../idempotency.ts';
import { withdrawHeld } from '../moderation/held-edit.ts';
import { holdWrite } from '../moderation/held-write.ts';
import { ownHeld } from '../moderation/own-held.ts';
import { recordModeration } from '../moderation/record-moderation.ts';
import { isUnfilteredFirstPage, type ListQuery, type Page } from '../lists/list-query.ts';
import { MAX_PAGE_CHARS, readPage, type TextBound } from '../lists/paging.ts';
import { roomRecordsOf, STATS_KEY, THREAD_KEY } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { touchRoom } from '../rooms/rooms.ts';
import { removeThread, threadLocks } from './thread-removal.ts';
import { nextTimeInThread, timeAfter } from './thread-time.ts';
import { threadList } from './thread-list.ts';
import { commentsText, parseThread, requireThreadAccess, threadPartition, threadView } from './thread-view.ts';
import { actingFor } from '../users/impersonate.ts';
import { InputSchema, validate } from '../input/validate.ts';

const createByBackend = new InputSchema(ThreadCreateSchema);
const createByUser = new InputSchema(Type.Omit(ThreadCreateSchema, ['userId']));
const patchByBackend = new InputSchema(ThreadPatchSchema);
const patchByUser = new InputSchema(Type.Omit(ThreadPatchSchema, ['userId']));

/**
 * Creates a thread with its first comment, and its room if necessary, and returns `{"thread":…}`. `input` is the parsed
 * JSON body. Filters may change or hold it. Throws `forbidden`, `invalid_request`, `unknown_user`, `id_taken`,
 * `idempotency_key_reused`, `content_rejected`.
 */
export async function createThread(
  ctx: Context,
  actor: Actor,
  roomId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireWrite(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkRoomId(roomId, limits);
  const read = readThreadDraft(actor, input, limits);
  const filters = filtersFor(ctx, actor, 'thread.create');
  const { draft, hold } =
    filters === undefined
      ? { draft: read, hold: null }
      : await filterNewThread(ctx, filters, { actor, roomId, draft: read, idempotency, limits });
  if (hold !== null) return holdWrite(ctx, actor, { kind: 'thread.create', roomId, draft }, hold, idempotency);
  const { first } = draft;
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const { record, now } = await newThreadRecord(ctx, tx, actor, roomId, draft);
    const location = newLocation(tx, actor.environment.id, record.id, now, undefined);
    const comment = await withAttachments(
      tx,
      actor,
      commentOf({ ...first, metadata: {} }, location.id, record.id, record.createdAt),
      first.attachmentIds,
    );
    const { thread, commentText } = await insertThread(tx, actor, { record, location, comment, now });
    return { status: 201, body: renderCreatedThread(thread, commentText) };
  });
}

/**
 * A page of the threads of a room, newest first by default; empty for an unknown room. Throws `forbidden`,
 * `invalid_cursor`.
 */
export async function listThreads(ctx: Context, actor: Actor, roomId: string, query: ListQuery): Promise<Page> {
  requireRead(actor, roomId);
  const limits = limitsOf(actor.environment);
  checkRoomId(roomId, limits);
  const partition = roomRecordsOf(actor.environment.id, roomId);
  const read = () =>
    readPage(ctx.store, query, limits.listHardCap, {
      ...threadList(ctx, actor.environment.id, partition, query),
      text: ({ text }) => text,
    });
  if (!isUnfilteredFirstPage(query)) return read();
  // Every change of a thread writes to the partition of its room in the same commit, so the cache depends on that one
  // only.
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
    new CollabError(
      'payload_too_large',
      `The thread with its comments is longer than an answer may be (${MAX_PAGE_CHARS} characters): read ` +
        'them in pages with GET /threads/:threadId/comments?limit=100',
    ),
};

/**
 * A thread with all its comments: `{"thread":…,"comments":[…]}`. A user also sees what they have written in it and
 * moderators hold, with `status: "held"`, as far as it fits. Throws `forbidden`, `thread_not_found`, and the error of
 * `bound`.
 */
export async function getThread(ctx: Context, actor: Actor, threadId: string, bound = threadBound): Promise<string> {
  requireRead(actor);
  await requireThreadAccess(ctx, actor, threadId);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  // Read first: what is approved in between is in both, and not in neither.
  const held = (await ownHeld(ctx, actor)).filter((item) => item.threadId === threadId);
  const heldThread = held.find(({ kind }) => kind === 'thread');
  if (heldThread !== undefined && (await ctx.store.get(partition, THREAD_KEY)) === undefined) {
    requireRoomAccess(actor, heldThread.roomId);
    return heldThreadText(heldThread);
  }
  // A thread that is too long is cached as null, or each request would read up to the bound again.
  const whole = await ctx.store.cached(`thread ${bound.maxChars} ${partition}`, [partition], async () => {
    const { text } = await threadView(ctx, environmentId, threadId);
    const comments = await commentsText(ctx, partition, bound.maxChars - text.length);
    return comments === null ? null : `{"thread":${text},"comments":${comments}}`;
  });
  if (whole === null) throw bound.tooLong();
  return held.length === 0 ? whole : threadTextWithHeld(whole, held, bound.maxChars);
}

/**
 * Resolves or reopens a thread, replaces its metadata or its position, and returns `{"threadId":…,"resolved":…}`.
 * `input` is the parsed JSON body, in which a backend may name the user for whom it does so. A field that has the
 * wanted value already is not changed. Throws `forbidden`, `invalid_request`, `unknown_user`, `thread_not_found`,
 * `content_rejected`.
 */
export async function patchThread(ctx: Context, actor: Actor, threadId: string, input: unknown): Promise<string> {
  requireChange(actor);
  await requireThreadAccess(ctx, actor, threadId);
  const {
    userId,
    resolved,
    metadata,
    position: wanted,
  }: ThreadPatch = actor.kind === 'user' ? validate(patchByUser, input) : validate(patchByBackend, input);
  // A pin is no content: every member may move it, and no moderation needs to.
  if (wanted !== undefined) requireWrite(actor, undefined, 'setting position');
  if (resolved === undefined && metadata === undefined && wanted === undefined)
    throw new CollabError(
      'invalid_request',
      'resolved is required, unless metadata or position is given (null counts as absent)',
    );
  if (metadata !== undefined) checkMetadata(metadata, limitsOf(actor.environment));
  const position = wanted === undefined ? undefined : checkPosition(wanted, limitsOf(actor.environment));
  return changeThread(ctx, await actingFor(ctx, actor, userId), threadId, { resolved, metadata, position });
}

/**
 * Resolves or reopens a thread and returns `{"threadId":…,"resolved":…}`. If the thread is in that state already, it
 * changes nothing and emits no event. Throws `forbidden`, `thread_not_found`, `content_rejected`.
 */
export function setResolved(ctx: Context, actor: Actor, threadId: string, resolved: boolean): Promise<string> {
  return changeThread(ctx, actor, threadId, { resolved });
}

interface ThreadChange {
  readonly resolved?: boolean | undefined;
  readonly metadata?: Metadata | undefined;
  readonly position?: Position | undefined;
}

async function changeThread(ctx: Context, actor: Actor, threadId: string, change: ThreadChange): Promise<string> {
  requireChange(actor);
  const environmentId = actor.environment.id;
  const partition = threadPartition(environmentId, threadId);
  if (change.resolved !== undefined && filtersFor(ctx, actor, 'thread.resolve') !== undefined)
    await filterResolution(ctx, actor, threadId, change.resolved);
  const resolved = await threadLocks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const record = parseThread(await tx.get(partition, THREAD_KEY));
      requireChange(actor, record.roomId);
      if (change.metadata !== undefined) requireAuthor(actor, record.userId, 'thread');
      // Without the guard, or resolving a busy thread would keep conflicting with its new comments.
      const stats = await tx.unguarded.get(partition, STATS_KEY);
      const { updatedAt } = stats === undefined ? record : parseThreadStats(stats);
      const now = timeAfter(ctx.clock, record.updatedAt, updatedAt);
      const { changed, types } = changedThread(record, change, actor, timestamp(now));
      if (types.length === 0) return record.resolved;
      // Every member may resolve and move a thread, so a moderator who does that does not moderate.
      const moderates = actor.kind === 'backend' || changed.metadata !== record.metadata;
      const details: AuditDetails = changed.resolved === record.resolved ? {} : { resolved: changed.resolved };
      if (moderates)
        await recordModeration(ctx, tx, actor, record.userId, {
          action: 'thread.update',
          target: { kind: 'thread', id: threadId },
          details,
        });
      putRecord(tx, partition, THREAD_KEY, changed);
      const opened = Number(!changed.resolved) - Number(!record.resolved);
      touchRoom(tx, environmentId, record.roomId, changed.updatedAt, 0, opened);
      const thread = presentThread(
        changed,
        stats === undefined ? { commentCount: 1, updatedAt: changed.updatedAt } : parseThreadStats(stats),
      );
      const data = JSON.stringify(thread);
      for (const type of types) {
        emitChange(tx, actor.environment, {
          type,
          at: now,
          roomId: record.roomId,
          threadId,
          userId: actorUserId(actor),
          via: actor.via,
          data,
        });
      }
      return changed.resolved;
    }),
  );
  return JSON.stringify({ threadId, resolved });
}

/** A thread after a change, and the types of the events to emit: none if nothing changes. */
function changedThread(
  record: ThreadRecord,
  { resolved, metadata, position }: ThreadChange,
  actor: Actor,
  at: string,
): { changed: ThreadRecord; types: EventType[] } {
  const types: EventType[] = [];
  let changed = record;
  if (metadata !== undefined && !isDeepStrictEqual(metadata, record.metadata)) {
    changed = { ...changed, metadata, updatedAt: at };
  }
  if (position !== undefined && JSON.stringify(position) !== JSON.stringify(record.position))
    changed = { ...changed, position, updatedAt: at };
  if (changed !== record) types.push('thread.updated');
  if (resolved !== undefined && resolved !== record.resolved) {
    changed = {
      ...changed,
      resolved,
      updatedAt: at,
      resolvedAt: resolved ? at : null,
      resolvedBy: resolved ? actorUserId(actor) : null,
    };
    types.push(resolved ? 'thread.resolved' : 'thread.reopened');
  }
  return { changed, types };
}

/**
 * Deletes a thread with all its comments and returns `{"deleted":true}`. The author and backends may withdraw a held
 * thread with it. Throws `forbidden`, `thread_not_found`.
 */
export async function deleteThread(ctx: Context, actor: Actor, threadId: string): Promise<string> {
  requireChange(actor);
  const partition = threadPartition(actor.environment.id, threadId);
  if (await withdrawHeld(ctx, actor, 'thread', threadId)) return DELETED;
  await threadLocks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const record = parseThread(await tx.get(partition, THREAD_KEY));
      requireChange(actor, record.roomId);
      requireAuthor(actor, record.userId, 'thread');
      await recordModeration(ctx, tx, actor, record.userId, {
        action: 'thread.delete',
        target: { kind: 'thread', id: threadId },
      });
      await removeThread(tx, actor, record, await nextTimeInThread(ctx, tx, partition));
    }),
  );
  return DELETED;
}

function readThreadDraft(actor: Actor, input: unknown, limits: Limits): ThreadDraft {
  const fields =
    actor.kind === 'user'
      ? { ...validate(createByUser, input), userId: actor.userId }
      : validate(createByBackend, input);
  const first = validateCommentDraft(fields, limits);
  return {
    id: fields.id,
    first,
    position: fields.position === undefined ? null : checkPosition(fields.position, limits),
  };
}
