import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { Comment, CommentPatch } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { ModerationItem } from '../../model/moderation.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { requireChange } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { filterChange } from '../comments/comment-filters.ts';
import { isSameContent, patchComment } from '../comments/comment-patch.ts';
import { timeAfter } from '../comments/thread-time.ts';
import type { Context } from '../context.ts';
import { removeHeldAttachments, withHeldAttachments } from '../files/attachments.ts';
import { filtersFor } from '../filtering.ts';
import { emitGone, emitHeld, heldView } from './notices.ts';
import { deleteItem, findHeldThread, findOpenItem, removeItem, replaceItem } from './queue.ts';
import { recordModeration } from './record-moderation.ts';

// What the author of held content, and a backend, may do with it before a moderator decides. For everybody else it does
// not exist.

/** A held comment, or the first one of a held thread, and its item. */
export interface OwnHeld {
  readonly item: ModerationItem;
  readonly comment: Comment;
}

/**
 * Edits a held comment, or the first one of a held thread, and returns `{"comment":…}` with the status `held`: it stays
 * held, as a new item, so that nobody approves a text that they have not seen. `found` is what `findOwnHeld` returned
 * for it; returns undefined if it has been decided since. `patch` is valid. Throws `forbidden`, `invalid_request`,
 * `unknown_attachment`, `attachment_linked`, `content_rejected`.
 */
export async function editHeld(
  ctx: Context,
  actor: Actor,
  found: OwnHeld,
  patch: CommentPatch,
  limits: Limits,
): Promise<string | undefined> {
  const commentId = found.comment.id;
  const filters = filtersFor(ctx, actor, 'comment.update');
  const { patch: filtered, hold } =
    filters === undefined
      ? { patch, hold: null }
      : await filterChange(filters, { actor, roomId: found.item.roomId, before: found.comment, patch, limits });
  return ctx.store.transact(async (tx) => {
    const own = await findOwnHeld(tx, actor, commentId);
    if (own === undefined) return undefined;
    const { item, comment } = own;
    const linked = await withHeldAttachments(tx, actor, comment, filtered.attachmentIds);
    const now = timeAfter(ctx.clock, comment.createdAt, comment.editedAt ?? comment.createdAt);
    const edited = patchComment(linked, filtered, timestamp(now), limits);
    if (isSameContent(edited, comment)) return render(comment);
    await removeHeldAttachments(
      tx,
      actor.environment.id,
      comment.attachments,
      edited.attachments.map(({ id }) => id),
    );
    const replacement: ModerationItem = {
      ...item,
      ...hold,
      id: newId('mod_', now),
      comment: edited,
      createdAt: timestamp(now),
    };
    replaceItem(tx, actor.environment.id, item, replacement);
    await recordModeration(ctx, tx, actor, item.userId, {
      action: 'comment.update',
      target: { kind: 'comment', id: commentId },
    });
    emitHeld(tx, actor, replacement, heldView(edited), now, item.id);
    return render(edited);
  });
}

/**
 * Withdraws held content: a comment, or a thread with its first comment, of which either id may be given. Returns
 * whether the actor has such content. Throws `forbidden`.
 */
export async function withdrawHeld(
  ctx: Context,
  actor: Actor,
  what: 'comment' | 'thread',
  id: string,
): Promise<boolean> {
  const find = async (reader: Pick<Reader, 'get'>): Promise<ModerationItem | undefined> =>
    requireOwn(actor, await findHeld(reader, actor, what, id));
  if ((await find(ctx.store)) === undefined) return false;
  return ctx.store.transact(async (tx) => {
    const item = await find(tx);
    if (item === undefined) return false;
    await removeItem(tx, actor.environment.id, item);
    await recordModeration(ctx, tx, actor, item.userId, { action: `${what}.delete`, target: { kind: what, id } });
    emitGone(tx, actor, item, ctx.clock.now(), 'withdrawn');
    return true;
  });
}

/**
 * The edit of a published comment as its author means it: they see their held edit in place of the comment, so what the
 * patch leaves out stays as it is there. Anybody else changes what is published.
 */
export async function onHeldEdit(
  reader: Pick<Reader, 'get'>,
  actor: Actor,
  commentId: string,
  patch: CommentPatch,
): Promise<CommentPatch> {
  if (actor.kind === 'backend') return patch;
  const item = await findOpenItem(reader, actor.environment.id, 'edit', commentId);
  if (item?.userId !== actor.userId || item.comment === null) return patch;
  const { body, mentions, metadata, attachments } = item.comment;
  return { body, mentions: [...mentions], metadata, attachmentIds: attachments.map(({ id }) => id), ...patch };
}

/**
 * Gives the held edit of a comment the metadata of `published`, if there is one: its approval would undo them. Emits it
 * again as a new item, since pages of its author take `comment.updated`, to be emitted before, for the comment that
 * they show.
 */
export async function setHeldMetadata(tx: Transaction, actor: Actor, published: Comment, now: number): Promise<void> {
  const item = await findOpenItem(tx, actor.environment.id, 'edit', published.id);
  if (item === undefined || item.comment === null) return;
  const comment: Comment = { ...item.comment, metadata: published.metadata };
  const replacement: ModerationItem = { ...item, id: newId('mod_', now), comment };
  replaceItem(tx, actor.environment.id, item, replacement);
  emitHeld(tx, actor, replacement, heldView(comment, published), now, item.id);
}

/**
 * Removes the held edit of a comment, if there is one, in the transaction in which a later edit is published. `kept`
 * are the ids of files that this edit links.
 */
export async function replaceHeldEdit(
  tx: Transaction,
  actor: Actor,
  commentId: string,
  kept: readonly string[],
  now: number,
): Promise<void> {
  const item = await takeHeldEdit(tx, actor.environment.id, commentId, kept);
  if (item !== undefined) emitGone(tx, actor, item, now, 'replaced');
}

/** Removes the held edit of a comment, and returns its item, if there is one. */
export async function takeHeldEdit(
  tx: Transaction,
  environmentId: string,
  commentId: string,
  kept: readonly string[],
): Promise<ModerationItem | undefined> {
  const item = await findOpenItem(tx, environmentId, 'edit', commentId);
  if (item === undefined) return undefined;
  deleteItem(tx, environmentId, item);
  await removeHeldAttachments(tx, environmentId, item.comment?.attachments ?? [], kept);
  return item;
}

/**
 * A held comment, or the first one of a held thread, if the actor may change it: its author and backends may. Throws
 * `forbidden` if the credential does not reach its room.
 */
export async function findOwnHeld(
  reader: Pick<Reader, 'get'>,
  actor: Actor,
  commentId: string,
): Promise<OwnHeld | undefined> {
  const item = requireOwn(actor, await findHeld(reader, actor, 'comment', commentId));
  return item === undefined || item.comment === null ? undefined : { item, comment: item.comment };
}

function findHeld(
  reader: Pick<Reader, 'get'>,
  { environment }: Actor,
  what: 'comment' | 'thread',
  id: string,
): Promise<ModerationItem | undefined> {
  return what === 'comment'
    ? findOpenItem(reader, environment.id, 'comment', id)
    : findHeldThread(reader, environment.id, id);
}

/**
 * The item if the actor is its author or a backend; undefined for anybody else. Throws `forbidden` if the credential
 * does not reach its room.
 */
function requireOwn(actor: Actor, item: ModerationItem | undefined): ModerationItem | undefined {
  if (item === undefined || (actor.kind === 'user' && actor.userId !== item.userId)) return undefined;
  requireChange(actor, item.roomId);
  return item;
}

const render = (comment: Comment): string => `{"comment":${JSON.stringify(heldView(comment))}}`;
