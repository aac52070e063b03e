import type { Comment, CommentPatch } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { DraftComment } from '../../model/filter.ts';
import type { Filters } from '../../ports/filters.ts';
import { requireAuthor, requireChange, requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { filterContent, type Filtered, type Hold, requirePassing } from '../filtering.ts';
import { hasStoredResponse, type Idempotency } from '../idempotency.ts';
import { checkBody, checkMentions, checkMetadata } from '../input/bounds.ts';
import { THREAD_KEY } from '../records/partitions.ts';
import { type CommentDraft, type ThreadDraft, validateCommentDraft } from './comment-draft.ts';
import { draftOf, isMetadataOnly } from './comment-patch.ts';
import { findComment } from './find-comment.ts';
import { parseThread, threadPartition } from './thread-view.ts';

// Where filters change, refuse or hold threads and comments: after the validation of a write and outside of its
// transaction, which checks everything again that may have changed in the meantime. Reactions, uploads and connections
// can only be refused: see `requirePassing`.

/** A validated comment to filter. */
export interface NewComment {
  readonly actor: Actor;
  readonly threadId: string;
  /** The partition of the thread. */
  readonly partition: string;
  readonly draft: CommentDraft;
  readonly idempotency: Idempotency;
  readonly limits: Limits;
}

/**
 * Runs the filters on a new comment, and returns it with their changes and, if one holds it, why. The comment of a
 * repeated request is not filtered, because the stored response is sent again. Throws `thread_not_found`, `forbidden`,
 * `content_rejected`.
 */
export async function filterNewComment(
  ctx: Context,
  filters: Filters,
  { actor, threadId, partition, draft, idempotency, limits }: NewComment,
): Promise<{ draft: CommentDraft; held: { roomId: string; hold: Hold } | null }> {
  if (await hasStoredResponse(ctx, actor, idempotency)) return { draft, held: null };
  const { roomId } = parseThread(await ctx.store.get(partition, THREAD_KEY));
  requireRoomAccess(actor, roomId);
  const { fields, hold } = await filterContent(
    filters,
    'comment.create',
    actor,
    { roomId, threadId, comment: commentOfDraft(draft) },
    checkWith(limits),
  );
  return { draft: changed(draft, fields, limits), held: hold === null ? null : { roomId, hold } };
}

/** A validated thread to filter. */
export interface NewThread {
  readonly actor: Actor;
  readonly roomId: string;
  readonly draft: ThreadDraft;
  readonly idempotency: Idempotency;
  readonly limits: Limits;
}

/** As `filterNewComment`, for a thread with its first comment. Throws `content_rejected`. */
export async function filterNewThread(
  ctx: Context,
  filters: Filters,
  { actor, roomId, draft, idempotency, limits }: NewThread,
): Promise<{ draft: ThreadDraft; hold: Hold | null }> {
  if (await hasStoredResponse(ctx, actor, idempotency)) return { draft, hold: null };
  const { position, first } = draft;
  const payload = { roomId, position, metadata: first.metadata, comment: commentOfDraft(first) };
  const { fields, hold } = await filterContent(filters, 'thread.create', actor, payload, checkWith(limits));
  return { draft: { ...draft, first: changed(first, fields, limits) }, hold };
}

/** A validated edit to filter. */
export interface Edit {
  readonly actor: Actor;
  readonly commentId: string;
  readonly patch: CommentPatch;
  readonly limits: Limits;
}

/**
 * Runs the filters on an edit, and returns it as `filterNewComment` does. The edit of a comment that does not exist is
 * not filtered: the transaction refuses it later. Throws `forbidden`, `content_rejected`.
 */
export async function filterEdit(
  ctx: Context,
  filters: Filters,
  { actor, commentId, patch, limits }: Edit,
): Promise<{ patch: CommentPatch; held: { roomId: string; threadId: string; hold: Hold } | null }> {
  const found = await findComment(ctx.store, actor.environment.id, commentId);
  if (found === undefined) return { patch, held: null };
  const { comment: before, thread } = found;
  const { id: threadId, roomId } = thread;
  requireChange(actor, roomId);
  requireAuthor(actor, before.userId, 'comment');
  const { patch: edited, hold } = await filterChange(filters, { actor, roomId, before, patch, limits });
  return { patch: edited, held: hold === null ? null : { roomId, threadId, hold } };
}

/** An edit of a comment, with the comment before it. */
export interface Change extends Omit<Edit, 'commentId'> {
  readonly roomId: string;
  readonly before: Comment;
}

/**
 * Runs the filters on an edit, and returns it with their changes and, if one holds it, why. Of a change of the metadata
 * alone they change the metadata only: it would become an edit otherwise. Throws `content_rejected`.
 */
export async function filterChange(
  filters: Filters,
  { actor, roomId, before, patch, limits }: Change,
): Promise<{ patch: CommentPatch; hold: Hold | null }> {
  const { id: commentId, threadId } = before;
  const comment = draftOf(before, patch);
  const { fields, hold } = await filterContent(
    filters,
    'comment.update',
    actor,
    { roomId, threadId, commentId, before: draftOf(before), comment },
    checkWith(limits),
  );
  if (isMetadataOnly(patch)) return { patch: { metadata: fields.metadata ?? comment.metadata }, hold };
  const { mentions: filtered = patch.mentions, ...rest } = fields;
  return {
    patch: { ...patch, ...rest, ...(filtered === undefined ? {} : { mentions: [...checkMentions(filtered, limits)] }) },
    hold,
  };
}

/**
 * Runs the filters on the resolving or reopening of a thread, unless it is in that state already. Throws
 * `thread_not_found`, `forbidden`, `content_rejected`.
 */
export async function filterResolution(ctx: Context, actor: Actor, threadId: string, resolved: boolean): Promise<void> {
  const thread = parseThread(await ctx.store.get(threadPartition(actor.environment.id, threadId), THREAD_KEY));
  requireChange(actor, thread.roomId);
  if (thread.resolved !== resolved)
    await requirePassing(ctx, actor, 'thread.resolve', { roomId: thread.roomId, threadId, resolved });
}

function commentOfDraft({ userId, body, mentions, metadata, attachmentIds = [] }: CommentDraft): DraftComment {
  return { userId, body, mentions, metadata, attachmentIds };
}

/** Throws `invalid_request` for a comment that a client could not write either. */
function checkWith(limits: Limits): (comment: DraftComment) => void {
  return ({ body, mentions, metadata, attachmentIds }) => {
    checkBody(body, limits, attachmentIds.length);
    checkMentions(mentions, limits);
    checkMetadata(metadata, limits);
  };
}

function changed(draft: CommentDraft, fields: Filtered['fields'], limits: Limits): CommentDraft {
  if (Object.keys(fields).length === 0) return draft;
  return validateCommentDraft({ ...draft, ...fields }, limits);
}
