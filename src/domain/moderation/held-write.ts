import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { Comment, CommentPatch } from '../../model/comment.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { ModerationItem, ModerationKind } from '../../model/moderation.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { requireAuthor, requireChange, requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { type CommentDraft, commentOf, type ThreadDraft } from '../comments/comment-draft.ts';
import { newCommentId } from '../comments/comment-location.ts';
import { isMetadataOnly, isSameContent, patchComment } from '../comments/comment-patch.ts';
import { requireComment } from '../comments/find-comment.ts';
import { renderCreatedThread } from '../comments/comment-writing.ts';
import { newThreadRecord } from '../comments/new-thread.ts';
import { nextTimeInThread } from '../comments/thread-time.ts';
import { parseThread } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';
import { withHeldAttachments } from '../files/attachments.ts';
import type { Hold } from '../filtering.ts';
import { type Idempotency, type IdempotentResponse, withIdempotency } from '../idempotency.ts';
import { THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { requireKnownAuthor } from '../users/users.ts';
import { requireFreeCommentId } from './free-ids.ts';
import { takeHeldEdit } from './held-edit.ts';
import { emitGone, emitHeld, heldThreadView, heldView } from './notices.ts';
import { findOpenItem, putItem } from './queue.ts';

/** A validated write that a filter holds, with the changes of the filters before it. */
export type HeldWrite =
  | {
      readonly kind: 'comment.create';
      readonly roomId: string;
      readonly threadId: string;
      readonly draft: CommentDraft;
    }
  | {
      readonly kind: 'comment.update';
      readonly roomId: string;
      readonly threadId: string;
      readonly commentId: string;
      readonly patch: CommentPatch;
    }
  | { readonly kind: 'thread.create'; readonly roomId: string; readonly draft: ThreadDraft };

/**
 * Stores a write apart from the threads until a moderator decides on it, and returns the response for its author: the
 * comment or thread as it would be, with `status: "held"`. Throws as the write itself would, and `quota_exceeded` if
 * the queue is full.
 */
export function holdWrite(
  ctx: Context,
  actor: Actor,
  write: HeldWrite,
  hold: Hold,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    switch (write.kind) {
      case 'comment.create':
        return { status: 201, body: `{"comment":${await holdComment(ctx, tx, actor, write, hold)}}` };
      case 'comment.update':
        return { status: 200, body: `{"comment":${await holdEdit(ctx, tx, actor, write, hold)}}` };
      case 'thread.create':
        return { status: 201, body: await holdThread(ctx, tx, actor, write, hold) };
    }
  });
}

type Held<K extends HeldWrite['kind']> = Extract<HeldWrite, { kind: K }>;

async function holdComment(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  { threadId, draft }: Held<'comment.create'>,
  hold: Hold,
): Promise<string> {
  const environmentId = actor.environment.id;
  const partition = threadRecordsOf(environmentId, threadId);
  const { roomId } = parseThread(await tx.get(partition, THREAD_KEY));
  requireRoomAccess(actor, roomId);
  await requireKnownAuthor(ctx, tx, actor, draft.userId);
  if (draft.id !== undefined) await requireFreeCommentId(tx, environmentId, draft.id);
  const now = await nextTimeInThread(ctx, tx, partition);
  const comment = await heldComment(tx, actor, draft, threadId, now);
  const item = newItem(actor, 'comment', { roomId, comment, thread: null, now }, hold);
  putItem(tx, environmentId, item);
  emitHeld(tx, actor, item, heldView(comment), now, null);
  return JSON.stringify(heldView(comment));
}

async function holdThread(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  { roomId, draft }: Held<'thread.create'>,
  hold: Hold,
): Promise<string> {
  const { record: thread, now } = await newThreadRecord(ctx, tx, actor, roomId, draft);
  const comment = await heldComment(tx, actor, { ...draft.first, id: undefined, metadata: {} }, thread.id, now);
  const item = newItem(actor, 'thread', { roomId, comment, thread, now }, hold);
  putItem(tx, actor.environment.id, item);
  emitHeld(tx, actor, item, heldView(comment), now, null);
  return renderCreatedThread(heldThreadView(thread), JSON.stringify(heldView(comment)));
}

/**
 * Holds an edit in place of an earlier held one. Metadata alone are held with the text of that one, which stays its
 * author's. What changes nothing is not held: it withdraws the earlier one if it is the published text.
 */
async function holdEdit(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  { commentId, patch }: Held<'comment.update'>,
  hold: Hold,
): Promise<string> {
  const environmentId = actor.environment.id;
  const { comment: current, partition, thread } = await requireComment(tx, environmentId, commentId);
  const { roomId } = thread;
  requireChange(actor, roomId);
  requireAuthor(actor, current.userId, 'comment');
  const now = await nextTimeInThread(ctx, tx, partition);
  const held = (await findOpenItem(tx, environmentId, 'edit', commentId))?.comment ?? null;
  const keepsText = held !== null && isMetadataOnly(patch);
  const linked = await withHeldAttachments(tx, actor, keepsText ? held : current, patch.attachmentIds);
  const edited = patchComment(linked, patch, timestamp(now), limitsOf(actor.environment));
  if (held !== null && isSameContent(edited, held)) return JSON.stringify(heldView(held, current));
  const earlier = await takeHeldEdit(
    tx,
    environmentId,
    commentId,
    edited.attachments.map(({ id }) => id),
  );
  if (isSameContent(edited, current)) {
    if (earlier !== undefined) emitGone(tx, actor, earlier, now, 'withdrawn');
    return JSON.stringify(current);
  }
  const fresh = newItem(actor, 'edit', { roomId, comment: edited, thread: null, now }, hold);
  const item: ModerationItem = keepsText && earlier !== undefined ? { ...fresh, ...writerOf(earlier) } : fresh;
  putItem(tx, environmentId, item);
  emitHeld(tx, actor, item, heldView(edited, current), now, earlier?.id ?? null);
  return JSON.stringify(heldView(edited, current));
}

async function heldComment(
  tx: Transaction,
  actor: Actor,
  draft: CommentDraft,
  threadId: string,
  now: number,
): Promise<Comment> {
  const comment = commentOf(draft, draft.id ?? newCommentId(threadId, now), threadId, timestamp(now));
  return withHeldAttachments(tx, actor, comment, draft.attachmentIds);
}

interface Content {
  readonly roomId: string;
  readonly comment: Comment;
  readonly thread: ThreadRecord | null;
  readonly now: number;
}

function newItem(
  actor: Actor,
  kind: ModerationKind,
  { roomId, comment, thread, now }: Content,
  { plugin, reason }: Hold,
): ModerationItem {
  return {
    id: newId('mod_', now),
    kind,
    state: 'held',
    roomId,
    threadId: comment.threadId,
    commentId: comment.id,
    userId: comment.userId,
    plugin,
    reason,
    comment,
    thread,
    ...(actor.kind === 'backend' ? { keyId: actor.keyId, actsFor: actor.actsFor ?? null } : { keyId: null }),
    via: actor.via,
    reports: 0,
    createdAt: timestamp(now),
    decidedAt: null,
    decidedBy: null,
    rejection: null,
  };
}

/** Who wrote held content, which another one has changed. */
function writerOf({ keyId, actsFor, via }: ModerationItem): Pick<ModerationItem, 'keyId' | 'actsFor' | 'via'> {
  return { keyId, via, ...(actsFor === undefined ? {} : { actsFor }) };
}
