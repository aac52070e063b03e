import * as Type from 'typebox';
import { DELETED } from '../deleted.ts';
import { invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import { type Comment, type CommentPatch, CommentPatchSchema } from '../../model/comment.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { hasMetadata } from '../../model/metadata.ts';
import { parseThreadStats } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import {
  actorUserId,
  requireAuthor,
  requireChange,
  requireRead,
  requireRoomAccess,
  requireWrite,
} from '../access/access.ts';
import { removeAttachments, withAttachments } from '../files/attachments.ts';
import { commentOf, parseCommentDraft } from './comment-draft.ts';
import { insertComment, replaceComment, updateThreadStats } from './comment-writing.ts';
import { filterEdit, filterNewComment } from './comment-filters.ts';
import { checkPatch, isMetadataOnly, patchComment } from './comment-patch.ts';
import { deleteLocation, newLocation } from './comment-location.ts';
import { commentNotFound, requireComment, requireCommentAccess, requireLocation } from './find-comment.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { filtersFor } from '../filtering.ts';
import { type Idempotency, withIdempotency, type IdempotentResponse } from '../idempotency.ts';
import { type Filters, hasFilters, isUnfilteredFirstPage, type ListQuery, type Page } from '../lists/list-query.ts';
import { readPage } from '../lists/paging.ts';
import { COMMENT_PREFIX, DELETIONS_KEY, STATS_KEY, THREAD_KEY } from '../records/partitions.ts';
import { RecordText } from '../records/record.ts';
import { requireFreeCommentId } from '../moderation/free-ids.ts';
import {
  editHeld,
  findOwnHeld,
  onHeldEdit,
  replaceHeldEdit,
  setHeldMetadata,
  withdrawHeld,
} from '../moderation/held-edit.ts';
import { holdWrite } from '../moderation/held-write.ts';
import { recordModeration } from '../moderation/record-moderation.ts';
import { removeItemsAbout } from '../moderation/queue.ts';
import { touchRoom } from '../rooms/rooms.ts';
import { removeThread, threadLocks } from './thread-removal.ts';
import { nextTimeInThread } from './thread-time.ts';
import { parseThread, requireThreadAccess, threadNotFound, threadPartition } from './thread-view.ts';
import { countUsage } from '../quotas/usage.ts';
import { actingFor } from '../users/impersonate.ts';
import { requireKnownAuthor } from '../users/users.ts';
import { InputSchema, validate } from '../input/validate.ts';

const patchByBackend = new InputSchema(CommentPatchSchema);
const patchByUser = new InputSchema(Type.Omit(CommentPatchSchema, ['userId']));
/**
 * Serialises the changes of a comment within this process, which would otherwise conflict. Those of other processes do,
 * and run again. Keyed by `<environmentId> <commentId>`.
 */
export const commentLocks = new KeyedLock();

/**
 * A page of the comments of a thread, oldest first by default. Throws `forbidden`, `thread_not_found`,
 * `invalid_cursor`.
 */
export async function listComments(ctx: Context, actor: Actor, threadId: string, query: ListQuery): Promise<Page> {
  requireRead(actor);
  // Nearly all actors see every room, and nothing is asked for more often.
  if (actor.rooms !== null) await requireThreadAccess(ctx, actor, threadId);
  const partition = threadPartition(actor.environment.id, threadId);
  const cap = limitsOf(actor.environment).listHardCap;
  if (!isUnfilteredFirstPage(query)) return readComments(ctx, partition, query, cap);
  const key = `comments ${query.limit ?? cap} ${query.sort} ${query.order} ${partition}`;
  return ctx.store.cached(key, [partition], async () => {
    const page = await readComments(ctx, partition, query, cap);
    return { text: Buffer.from(page.text), nextCursor: page.nextCursor };
  });
}

/** A comment: `{"comment":…}`. Throws `forbidden`, `comment_not_found`. */
export async function getComment(ctx: Context, actor: Actor, commentId: string): Promise<string> {
  requireRead(actor);
  await requireCommentAccess(ctx, actor, commentId);
  const { partition, key } = await requireLocation(ctx.store, actor.environment.id, commentId);
  const text = await ctx.store.get(partition, key);
  // The comments of a deleted room are removed after their threads.
  if (text === undefined || (await ctx.store.get(partition, THREAD_KEY)) === undefined) throw commentNotFound();
  return `{"comment":${text}}`;
}

/**
 * Adds a comment to a thread and returns `{"comment":…}`. `input` is the parsed JSON body. Filters may change or hold
 * it. Throws `forbidden`, `invalid_request`, `unknown_user`, `thread_not_found`, `id_taken`, `idempotency_key_reused`,
 * `content_rejected`.
 */
export async function createComment(
  ctx: Context,
  actor: Actor,
  threadId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireWrite(actor);
  if (actor.rooms !== null) await requireThreadAccess(ctx, actor, threadId);
  const environmentId = actor.environment.id;
  const limits = limitsOf(actor.environment);
  const parsed = parseCommentDraft(actor, input, limits);
  const partition = threadPartition(environmentId, threadId);
  const filters = filtersFor(ctx, actor, 'comment.create');
  const { draft, held } =
    filters === undefined
      ? { draft: parsed, held: null }
      : await filterNewComment(ctx, filters, { actor, threadId, partition, draft: parsed, idempotency, limits });
  if (held !== null)
    return holdWrite(
      ctx,
      actor,
      { kind: 'comment.create', roomId: held.roomId, threadId, draft },
      held.hold,
      idempotency,
    );
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const { roomId } = parseThread(await tx.get(partition, THREAD_KEY));
    requireRoomAccess(actor, roomId);
    await requireKnownAuthor(ctx, tx, actor, draft.userId);
    if (draft.id !== undefined) await requireFreeCommentId(tx, environmentId, draft.id);

    const now = await nextTimeInThread(ctx, tx, partition);
    const location = newLocation(tx, environmentId, threadId, now, draft.id);
    const plain = commentOf(draft, location.id, threadId, timestamp(now));
    const comment =
      draft.attachmentIds === undefined ? plain : await withAttachments(tx, actor, plain, draft.attachmentIds);
    const text = insertComment(tx, actor, { location, roomId, comment, now });
    return { status: 201, body: `{"comment":${text}}` };
  });
}

/**
 * Changes the text of a comment, and its mentions, attachments and metadata if given, or its metadata alone, which does
 * not count as an edit, and returns `{"comment":…}`. `input` is the parsed JSON body, in which a backend may name the
 * user for whom it does so. Filters may change or hold it. The author and backends may edit a held comment too, which
 * stays held. Throws `forbidden`, `invalid_request`, `unknown_user`, `comment_not_found`, `unknown_attachment`,
 * `attachment_linked`, `content_rejected`.
 */
export async function editComment(ctx: Context, caller: Actor, commentId: string, input: unknown): Promise<string> {
  requireChange(caller);
  const own = await findOwnHeld(ctx.store, caller, commentId);
  if (own === undefined) await requireCommentAccess(ctx, caller, commentId);
  const limits = limitsOf(caller.environment);
  const { userId, ...given } = readPatch(caller, input);
  const actor = await actingFor(ctx, caller, userId);
  const valid = checkPatch(given, limits);
  const heldText = own === undefined ? undefined : await editHeld(ctx, actor, own, valid, limits);
  if (heldText !== undefined) return heldText;
  const checked = await onHeldEdit(ctx.store, actor, commentId, valid);
  const filters = filtersFor(ctx, actor, 'comment.update');
  const { patch, held } =
    filters === undefined
      ? { patch: checked, held: null }
      : await filterEdit(ctx, filters, { actor, commentId, patch: checked, limits });
  if (held !== null)
    return (
      await holdWrite(
        ctx,
        actor,
        { kind: 'comment.update', roomId: held.roomId, threadId: held.threadId, commentId, patch },
        held.hold,
        null,
      )
    ).body;
  const environmentId = actor.environment.id;
  return commentLocks.run(`${environmentId} ${commentId}`, () =>
    ctx.store.transact(async (tx) => {
      const { partition, key, comment, thread } = await requireComment(tx, environmentId, commentId);
      requireChange(actor, thread.roomId);
      requireAuthor(actor, comment.userId, 'comment');
      const now = await nextTimeInThread(ctx, tx, partition);
      const linked = await withAttachments(tx, actor, comment, checked.attachmentIds);
      const edited = patchComment(linked, patch, timestamp(now), limits);
      if (!isMetadataOnly(patch))
        await replaceHeldEdit(
          tx,
          actor,
          commentId,
          edited.attachments.map(({ id }) => id),
          now,
        );
      await recordModeration(ctx, tx, actor, comment.userId, {
        action: 'comment.update',
        target: { kind: 'comment', id: commentId },
      });
      const text = replaceComment(tx, actor, {
        location: { partition, key },
        roomId: thread.roomId,
        comment: edited,
        now,
      });
      if (isMetadataOnly(patch)) await setHeldMetadata(tx, actor, edited, now);
      return `{"comment":${text}}`;
    }),
  );
}

/**
 * The valid body of an edit. Throws `invalid_request`, also for one that changes more than metadata and has no text.
 */
function readPatch(actor: Actor, input: unknown): CommentPatch {
  const patch: CommentPatch = actor.kind === 'user' ? validate(patchByUser, input) : validate(patchByBackend, input);
  if (patch.body === undefined && (patch.metadata === undefined || !isMetadataOnly(patch)))
    throw invalidField('body', 'is required, unless metadata alone is given (null counts as absent)');
  return patch;
}

/**
 * Deletes a comment, and its thread too if it was the last comment, and returns `{"deleted":true}`. The author and
 * backends may withdraw a held comment with it. Throws `forbidden`, `comment_not_found`.
 */
export async function deleteComment(ctx: Context, actor: Actor, commentId: string): Promise<string> {
  requireChange(actor);
  if (await withdrawHeld(ctx, actor, 'comment', commentId)) return DELETED;
  await requireCommentAccess(ctx, actor, commentId);
  const environmentId = actor.environment.id;
  const location = await requireLocation(ctx.store, environmentId, commentId);
  return threadLocks.run(location.partition, () =>
    ctx.store.transact((tx) => removeComment(ctx, tx, actor, commentId)),
  );
}

/**
 * Deletes a comment in a transaction, as `deleteComment` does. `decidedId` is the item of the moderation queue whose
 * rejection does so.
 */
export async function removeComment(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  commentId: string,
  decidedId?: string,
): Promise<string> {
  const environmentId = actor.environment.id;
  const { partition, key, comment, thread } = await requireComment(tx, environmentId, commentId);
  requireChange(actor, thread.roomId);
  requireAuthor(actor, comment.userId, 'comment');
  const now = await nextTimeInThread(ctx, tx, partition);
  const at = timestamp(now);
  await recordModeration(ctx, tx, actor, comment.userId, {
    action: 'comment.delete',
    target: { kind: 'comment', id: commentId },
  });
  const deletions = Number((await tx.get(partition, DELETIONS_KEY)) ?? 0);
  // Deletions conflict with each other, so the count can only have grown since this read. It is read with the guard
  // (which conflicts with new comments) only if this may be the last comment.
  let threadDeleted = countOf(await tx.unguarded.get(partition, STATS_KEY)) <= 1;
  if (threadDeleted) threadDeleted = countOf(await tx.get(partition, STATS_KEY)) <= 1;
  // A transaction does not read its own writes, so items that are removed twice would count twice.
  if (!threadDeleted)
    await removeItemsAbout(tx, actor, { roomId: thread.roomId, threadId: thread.id, commentId, decidedId }, now);
  emitChange(tx, actor.environment, {
    type: 'comment.deleted',
    at: now,
    roomId: thread.roomId,
    threadId: thread.id,
    userId: actorUserId(actor),
    via: actor.via,
    data: JSON.stringify({ commentId, threadId: thread.id, threadDeleted }),
  });
  if (threadDeleted) {
    await removeThread(tx, actor, thread, now, decidedId);
    return DELETED;
  }
  await removeAttachments(tx, environmentId, comment.attachments);
  countUsage(tx, environmentId, comment.userId, 'comments', -1);
  tx.put(partition, DELETIONS_KEY, String(deletions + 1));
  tx.delete(partition, key);
  deleteLocation(tx, environmentId, key);
  updateThreadStats(tx, partition, at, -1);
  touchRoom(tx, environmentId, thread.roomId, at);
  return DELETED;
}

async function readComments(ctx: Context, partition: string, query: ListQuery, cap: number): Promise<Page> {
  if ((await ctx.store.get(partition, THREAD_KEY)) === undefined) throw threadNotFound();
  const isFiltered = hasFilters(query);
  return readPage<RecordText<Comment>>(ctx.store, query, cap, {
    partition,
    prefix: COMMENT_PREFIX,
    isFiltered,
    parse: (entry) => {
      const comment = new RecordText<Comment>(entry);
      return isFiltered && !matches(comment.value, query.filters) ? null : comment;
    },
    updatedAt: ({ value }) => updatedAtOf(value),
    text: ({ text }) => text,
  });
}

function matches(
  comment: Comment,
  { userId, mentions, createdSince, updatedSince, metadata }: Readonly<Filters>,
): boolean {
  if (!hasMetadata(comment.metadata, metadata)) return false;
  if (userId !== undefined && comment.userId !== userId) return false;
  if (mentions !== undefined && !comment.mentions.includes(mentions)) return false;
  if (createdSince !== undefined && comment.createdAt < createdSince) return false;
  return updatedSince === undefined || updatedAtOf(comment) >= updatedSince;
}

const updatedAtOf = ({ createdAt, editedAt }: Comment): string =>
  editedAt !== null && editedAt > createdAt ? editedAt : createdAt;

const countOf = (stats: string | undefined): number => (stats === undefined ? 0 : parseThreadStats(stats).commentCount);
