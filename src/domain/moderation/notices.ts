import { timestamp } from '../../lib/clock.ts';
import type { Comment } from '../../model/comment.ts';
import type { EventType } from '../../model/event.ts';
import type {
  ContentApproved,
  ContentHeld,
  ContentRejected,
  ContentReported,
  ModerationItem,
  ModerationNotice,
  RejectionCause,
} from '../../model/moderation.ts';
import { presentThread, type Thread, type ThreadRecord } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { actorUserId } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { emitChange } from '../events/emit.ts';

// The events of the moderation queue. They reach moderators, backends that may moderate, and the author of the content:
// so they never say why a plugin held it, who reported it, or who decided.

/**
 * The reason of content that leaves the queue without a decision, for its author; empty if that is the author's own
 * doing.
 */
const REASONS: Readonly<Record<Exclude<RejectionCause, 'moderator'>, string>> = {
  withdrawn: '',
  replaced: '',
  deleted: 'What it belongs to was deleted.',
};

/** A held comment, or the held edit of the `published` one, as its author sees it. */
export function heldView(comment: Comment, published?: Comment): Comment {
  return published === undefined ? { ...comment, status: 'held' } : { ...comment, status: 'held', published };
}

/** A held thread as its author sees it. */
export function heldThreadView(thread: ThreadRecord): Thread {
  return { ...presentThread(thread, { commentCount: 1, updatedAt: thread.updatedAt }), status: 'held' };
}

/**
 * Emits `moderation.held` with the `heldView` of the comment. `replaces` is the id of the item whose place it takes, if
 * any.
 */
export function emitHeld(
  tx: Transaction,
  actor: Actor,
  item: ModerationItem,
  comment: Comment,
  now: number,
  replaces: string | null,
): void {
  emit<ContentHeld>(tx, actor, 'moderation.held', item, now, actorUserId(actor), {
    comment,
    thread: item.thread === null ? null : heldThreadView(item.thread),
    replaces,
  });
}

/** Emits `moderation.reported`. */
export function emitReported(tx: Transaction, actor: Actor, item: ModerationItem, comment: Comment, now: number): void {
  emit<ContentReported>(tx, actor, 'moderation.reported', item, now, null, { comment, reportCount: item.reports });
}

/** Emits `moderation.approved`. */
export function emitApproved(tx: Transaction, actor: Actor, item: ModerationItem, now: number): void {
  emit<ContentApproved>(tx, actor, 'moderation.approved', item, now, null, { decidedAt: timestamp(now) });
}

/** Emits `moderation.rejected` with the reason that a moderator gave. */
export function emitRejected(tx: Transaction, actor: Actor, item: ModerationItem, now: number, reason: string): void {
  emit<ContentRejected>(tx, actor, 'moderation.rejected', item, now, null, {
    cause: 'moderator',
    reason,
    decidedAt: timestamp(now),
  });
}

/** Emits `moderation.rejected` for held content that leaves the queue without a decision. */
export function emitGone(
  tx: Transaction,
  actor: Actor,
  item: ModerationItem,
  now: number,
  cause: Exclude<RejectionCause, 'moderator'>,
): void {
  emit<ContentRejected>(tx, actor, 'moderation.rejected', item, now, null, {
    cause,
    reason: REASONS[cause],
    decidedAt: timestamp(now),
  });
}

function emit<N extends ModerationNotice>(
  tx: Transaction,
  { environment, via }: Actor,
  type: EventType,
  item: ModerationItem,
  at: number,
  actorId: string | null,
  details: Omit<N, keyof ModerationNotice>,
): void {
  const { id: itemId, kind, roomId, threadId, commentId, userId } = item;
  const data = JSON.stringify({ itemId, kind, roomId, threadId, commentId, userId, ...details });
  emitChange(tx, environment, { type, at, roomId, threadId, receiverId: userId, userId: actorId, via, data });
}
