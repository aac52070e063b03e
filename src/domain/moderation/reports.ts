import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { Comment } from '../../model/comment.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { type ModerationItem, type Report, ReportCreateSchema } from '../../model/moderation.ts';
import type { Transaction } from '../../ports/store.ts';
import { actorKey, requireChange, userKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { requireComment, requireCommentAccess } from '../comments/find-comment.ts';
import type { Context } from '../context.ts';
import { type Idempotency, type IdempotentResponse, withIdempotency } from '../idempotency.ts';
import { checkId } from '../input/bounds.ts';
import { InputSchema, validate } from '../input/validate.ts';
import { reportsOf } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';
import { requireKnownAuthor } from '../users/users.ts';
import { emitReported } from './notices.ts';
import { findOpenItem, lastDecisionOnReports, putItem, replaceItem, reportKey } from './queue.ts';

const reportInput = new InputSchema(ReportCreateSchema);

/**
 * Reports a comment to the moderators, once per user, and returns `{"report":…}`: 201, or 200 with the earlier report
 * of the same user. After a dismissal, an edit opens the way to another one. `input` is `{reason, userId?}`; for a user
 * in a browser the user is that of the token. Throws `forbidden`, `invalid_request`, `unknown_user`,
 * `comment_not_found`.
 */
export async function reportComment(
  ctx: Context,
  actor: Actor,
  commentId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireChange(actor);
  await requireCommentAccess(ctx, actor, commentId);
  const { reason, userId: named = null } = validate(reportInput, input);
  if (!/\S/.test(reason)) throw new CollabError('invalid_request', 'reason must not be only white space');
  const userId = actor.kind === 'user' ? actor.userId : named;
  const environmentId = actor.environment.id;
  if (userId !== null) checkId('userId', userId, limitsOf(actor.environment));
  const key = reportKey(commentId, userId === null ? actorKey(actor) : userKey(environmentId, userId));
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    const { comment, thread } = await requireComment(tx, environmentId, commentId);
    requireChange(actor, thread.roomId);
    if (userId !== null) await requireKnownAuthor(ctx, tx, actor, userId);
    const earlier = await readRecord<Report>(tx, reportsOf(environmentId), key);
    const item = await findOpenItem(tx, environmentId, 'report', commentId);
    if (earlier !== undefined && (await counts(tx, actor, earlier, { item, comment, roomId: thread.roomId }))) {
      return { status: 200, body: JSON.stringify({ report: earlier }) };
    }
    const now = ctx.clock.now();
    const body = item === undefined || item.comment?.body === comment.body ? {} : { body: comment.body };
    const report: Report = { commentId, userId, reason, ...body, createdAt: timestamp(now) };
    putRecord(tx, reportsOf(environmentId), key, report);
    const counted =
      item === undefined ? reportItem(actor, thread.roomId, comment, now) : { ...item, reports: item.reports + 1 };
    if (item === undefined) putItem(tx, environmentId, counted);
    else replaceItem(tx, environmentId, item, counted);
    emitReported(tx, actor, counted, counted.comment ?? comment, now);
    return { status: 201, body: JSON.stringify({ report }) };
  });
}

/**
 * Whether an earlier report of the same user stands for another one: it is part of the open item, or the comment was
 * not edited since moderators dismissed it. One of a deleted comment that had the id never does.
 */
async function counts(
  tx: Transaction,
  { environment }: Actor,
  earlier: Report,
  { item, comment, roomId }: { item: ModerationItem | undefined; comment: Comment; roomId: string },
): Promise<boolean> {
  if (earlier.createdAt < comment.createdAt) return false;
  if (item !== undefined && earlier.createdAt >= item.createdAt) return true;
  const decidedAt = await lastDecisionOnReports(tx, environment.id, roomId, comment);
  return decidedAt === null || comment.editedAt === null || comment.editedAt < decidedAt;
}

function reportItem({ via }: Actor, roomId: string, comment: Comment, now: number): ModerationItem {
  return {
    id: newId('mod_', now),
    kind: 'report',
    state: 'reported',
    roomId,
    threadId: comment.threadId,
    commentId: comment.id,
    userId: comment.userId,
    plugin: null,
    reason: null,
    comment,
    thread: null,
    keyId: null,
    via,
    reports: 1,
    createdAt: timestamp(now),
    decidedAt: null,
    decidedBy: null,
    rejection: null,
  };
}
