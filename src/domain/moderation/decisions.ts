import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import type { Comment } from '../../model/comment.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { type ModerationItem, RejectionSchema } from '../../model/moderation.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { requireModerator } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { auditActorOf, appendAuditRecord } from '../audit/audit.ts';
import { newLocation } from '../comments/comment-location.ts';
import { findComment } from '../comments/find-comment.ts';
import { patchComment, patchTo } from '../comments/comment-patch.ts';
import { insertComment, insertThread, replaceComment, threadExists } from '../comments/comment-writing.ts';
import { removeComment } from '../comments/comments.ts';
import { nextTimeInRoom, nextTimeInThread } from '../comments/thread-time.ts';
import { parseThread } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';
import { releaseAttachments, removeAttachments, removeHeldAttachments } from '../files/attachments.ts';
import { type Idempotency, type IdempotentResponse, withIdempotency } from '../idempotency.ts';
import { InputSchema, validate } from '../input/validate.ts';
import { escapeId, roomRecordsOf, THREAD_KEY, threadRecordsOf, usersOf } from '../records/partitions.ts';
import { requireItem } from './items.ts';
import { emitApproved, emitRejected } from './notices.ts';
import { readReports, replaceItem, publishedComment } from './queue.ts';

const rejectionInput = new InputSchema(RejectionSchema);

/**
 * Approves an item: held content is written as if just now, under the id that its author knows; the reports of a
 * comment are dismissed. Returns `{"id":…,"state":"approved"}`; also if it is approved already, without another effect.
 * Throws `forbidden`, `moderation_item_not_found`, `already_decided`, `idempotency_key_reused`, and what writing the
 * content now throws, e.g. `thread_not_found` or `quota_exceeded`; the item is held then as before.
 */
export async function approveItem(
  ctx: Context,
  actor: Actor,
  itemId: string,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireModerator(actor);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const item = await requireItem(tx, actor, itemId);
    if (item.state === 'approved') return decision(item);
    requireUndecided(item);
    const decided: ModerationItem = { ...item, ...decidedBy(ctx, actor), state: 'approved' };
    const approved =
      item.kind === 'report'
        ? { ...decided, keptReports: await readReports(tx, actor.environment.id, decided) }
        : { ...decided, comment: null, thread: null };
    replaceItem(tx, actor.environment.id, item, approved);
    emitApproved(tx, actor, item, ctx.clock.now());
    await publish(ctx, tx, actor, item);
    await recordDecision(ctx, tx, actor, 'moderation.approve', item);
    return decision(approved);
  });
}

/**
 * Rejects an item: held content is never written, a reported comment is deleted, unless its author has done that.
 * `input` is `{reason}`, which the author can read. Returns `{"id":…,"state":"rejected"}`; also if it is rejected
 * already. Throws `forbidden`, `invalid_request`, `moderation_item_not_found`, `already_decided`,
 * `idempotency_key_reused`.
 */
export async function rejectItem(
  ctx: Context,
  actor: Actor,
  itemId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireModerator(actor);
  const { reason } = validate(rejectionInput, input);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const item = await requireItem(tx, actor, itemId);
    if (item.state === 'rejected') return decision(item);
    requireUndecided(item);
    const environmentId = actor.environment.id;
    // The files of held content are removed, so its author's view must not name them.
    const comment = item.comment === null ? null : { ...item.comment, attachments: [] };
    const rejected: ModerationItem = {
      ...item,
      ...decidedBy(ctx, actor),
      state: 'rejected',
      comment,
      rejection: reason,
    };
    if (item.kind === 'report') {
      const keptReports = await readReports(tx, environmentId, rejected);
      // Its author may have deleted it.
      if ((await publishedComment(tx, environmentId, item)) !== null)
        await removeComment(ctx, tx, actor, item.commentId, item.id);
      replaceItem(tx, environmentId, item, { ...rejected, comment: item.comment, keptReports });
    } else {
      await removeHeldAttachments(tx, environmentId, item.comment?.attachments ?? []);
      replaceItem(tx, environmentId, item, rejected);
    }
    emitRejected(tx, actor, item, ctx.clock.now(), reason);
    await recordDecision(ctx, tx, actor, 'moderation.reject', item);
    return decision(rejected);
  });
}

/** Writes held content; no effect for a report. */
async function publish(ctx: Context, tx: Transaction, actor: Actor, item: ModerationItem): Promise<void> {
  const { kind, comment, thread } = item;
  if (kind === 'report' || comment === null) return;
  // Read so that this conflicts with an erasure of the author.
  if ((await tx.get(usersOf(actor.environment.id), escapeId(item.userId))) === undefined) {
    throw new CollabError('unknown_user', `The author ${item.userId} was erased. Reject the item`);
  }
  await releaseAttachments(tx, actor.environment.id, comment.attachments);
  if (kind === 'thread' && thread !== null) return publishThread(ctx, tx, authorOf(actor, item), thread, comment);
  return kind === 'edit'
    ? publishEdit(ctx, tx, authorOf(actor, item), comment)
    : publishComment(ctx, tx, authorOf(actor, item), comment);
}

async function publishComment(ctx: Context, tx: Transaction, author: Actor, held: Comment): Promise<void> {
  const environmentId = author.environment.id;
  const partition = threadRecordsOf(environmentId, held.threadId);
  const record = await tx.get(partition, THREAD_KEY);
  if (record === undefined)
    throw new CollabError('thread_not_found', 'The thread of the comment was deleted. Reject the item');
  const now = await nextTimeInThread(ctx, tx, partition);
  const location = newLocation(tx, environmentId, held.threadId, now, held.id);
  insertComment(tx, author, {
    location,
    roomId: parseThread(record).roomId,
    comment: { ...held, createdAt: timestamp(now), editedAt: null },
    now,
  });
}

async function publishThread(
  ctx: Context,
  tx: Transaction,
  author: Actor,
  held: ThreadRecord,
  first: Comment,
): Promise<void> {
  const environmentId = author.environment.id;
  if (await threadExists(tx, threadRecordsOf(environmentId, held.id)))
    throw new CollabError('id_taken', `The id ${held.id} is taken by another thread. Reject the item`);
  const now = await nextTimeInRoom(ctx, tx, roomRecordsOf(environmentId, held.roomId));
  const at = timestamp(now);
  const location = newLocation(tx, environmentId, held.id, now, first.id);
  await insertThread(tx, author, {
    record: { ...held, createdAt: at, updatedAt: at },
    location,
    comment: { ...first, createdAt: at, editedAt: null },
    now,
  });
}

async function publishEdit(ctx: Context, tx: Transaction, author: Actor, held: Comment): Promise<void> {
  const environmentId = author.environment.id;
  const found = await findComment(tx, environmentId, held.id);
  if (found === undefined) throw new CollabError('comment_not_found', 'The comment was deleted. Reject the item');
  const { comment: current, thread } = found;
  const { attachments } = held;
  await removeAttachments(
    tx,
    environmentId,
    current.attachments.filter(({ id }) => !attachments.some((kept) => kept.id === id)),
  );
  const now = await nextTimeInThread(ctx, tx, found.partition);
  const comment = patchComment(
    { ...current, attachments },
    patchTo(held, current),
    timestamp(now),
    limitsOf(author.environment),
  );
  replaceComment(tx, author, { location: found, roomId: thread.roomId, comment, now });
}

/** The actor who wrote held content, for the quotas and events of writing it now. */
function authorOf({ environment }: Actor, { keyId, actsFor = null, userId, via }: ModerationItem): Actor {
  if (keyId === null)
    return { kind: 'user', environment, userId, role: 'member', rooms: null, confinedKeyId: null, via };
  return {
    kind: 'backend',
    environment,
    keyId,
    scope: 'full',
    rooms: null,
    ...(actsFor === null ? {} : { actsFor }),
    via,
  };
}

function decidedBy(ctx: Context, actor: Actor): Pick<ModerationItem, 'decidedAt' | 'decidedBy'> {
  return { decidedAt: timestamp(ctx.clock.now()), decidedBy: auditActorOf(ctx, actor) };
}

function recordDecision(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  action: 'moderation.approve' | 'moderation.reject',
  { id, kind, commentId, userId, reports }: ModerationItem,
): Promise<void> {
  const details = { kind, commentId, authorId: userId, reports };
  return appendAuditRecord(ctx, tx, actor.environment.id, {
    action,
    target: { kind: 'moderation-item', id },
    details,
    actor: auditActorOf(ctx, actor),
  });
}

function requireUndecided({ state, decidedAt }: ModerationItem): void {
  if (state === 'approved' || state === 'rejected')
    throw new CollabError('already_decided', `The item was ${state} at ${decidedAt}`);
}

function decision({ id, state }: ModerationItem): { status: 200; body: string } {
  return { status: 200, body: JSON.stringify({ id, state }) };
}
