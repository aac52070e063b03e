import * as Type from 'typebox';
import { DELETED } from '../deleted.ts';
import { CollabError, invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newShortId } from '../../lib/ids.ts';
import type { Comment } from '../../model/comment.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { EventType } from '../../model/event.ts';
import type { Limits } from '../../model/environments/limits.ts';
import { type Reaction, type ReactionCreate, ReactionCreateSchema } from '../../model/reaction.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { actorUserId, requireAuthor, requireChange, requireRoomAccess, requireWrite } from '../access/access.ts';
import { checkId } from '../input/bounds.ts';
import type { CommentLocation } from './comment-location.ts';
import { updateThreadStats } from './comment-writing.ts';
import { commentLocks } from './comments.ts';
import { requireComment, requireCommentAccess } from './find-comment.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { canonicalEmoji, isEmoji } from './emoji.ts';
import { emitChange } from '../events/emit.ts';
import { filtersFor, requirePassing } from '../filtering.ts';
import { hasStoredResponse, type Idempotency, withIdempotency, type IdempotentResponse } from '../idempotency.ts';
import { touchRoom } from '../rooms/rooms.ts';
import { recordModeration } from '../moderation/record-moderation.ts';
import { nextTimeInThread } from './thread-time.ts';
import { requireKnownAuthor } from '../users/users.ts';
import { InputSchema, validate } from '../input/validate.ts';
import { putRecord } from '../records/record.ts';

const createByBackend = new InputSchema(ReactionCreateSchema);
const createByUser = new InputSchema(Type.Omit(ReactionCreateSchema, ['userId']));

/** `re_`, a part of its own, then the id of the comment, which locates the reaction without an index. */
const REACTION_ID = /^re_[0-9a-z]{1,32}_([A-Za-z0-9_-]{1,64})$/;

/**
 * Adds a reaction to a comment and returns `{"reaction":…}`, with the status 201, or 200 and the existing reaction if
 * the user has reacted with this emoji before. `input` is the parsed JSON body. Throws `forbidden`, `invalid_request`,
 * `unknown_user`, `comment_not_found`, `idempotency_key_reused`, `content_rejected`.
 */
export async function addReaction(
  ctx: Context,
  actor: Actor,
  commentId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireWrite(actor);
  await requireCommentAccess(ctx, actor, commentId);
  const limits = limitsOf(actor.environment);
  const { userId, emoji } = parseDraft(actor, input, limits);
  const environmentId = actor.environment.id;
  if (filtersFor(ctx, actor, 'reaction.create') !== undefined && !(await hasStoredResponse(ctx, actor, idempotency))) {
    const { thread } = await requireComment(ctx.store, environmentId, commentId);
    requireRoomAccess(actor, thread.roomId);
    await requirePassing(ctx, actor, 'reaction.create', {
      roomId: thread.roomId,
      threadId: thread.id,
      commentId,
      userId,
      emoji,
    });
  }
  return commentLocks.run(`${environmentId} ${commentId}`, () =>
    withIdempotency(ctx, actor, idempotency, async (tx) => {
      const located = await requireComment(tx, environmentId, commentId);
      const { comment, thread } = located;
      requireRoomAccess(actor, thread.roomId);
      await requireKnownAuthor(ctx, tx, actor, userId);
      const earlier = comment.reactions.find(
        (reaction) => reaction.userId === userId && canonicalEmoji(reaction.emoji) === emoji,
      );
      if (earlier !== undefined) return { status: 200, body: renderReaction(earlier) };
      checkCapacity(comment.reactions, emoji, limits);

      const now = await nextTimeInThread(ctx, tx, located.partition);
      const id = `${newShortId('re_', now)}_${commentId}`;
      const reaction: Reaction = {
        id,
        reactionId: id,
        commentId,
        threadId: thread.id,
        userId,
        emoji,
        createdAt: timestamp(now),
      };
      putReactions(tx, actor, located, [...comment.reactions, reaction], now);
      emitReaction(tx, actor, thread, { type: 'reaction.created', now, userId, data: JSON.stringify(reaction) });
      return { status: 201, body: renderReaction(reaction) };
    }),
  );
}

/**
 * Removes a reaction and returns `{"deleted":true}`. Users who are not moderators can remove only their own.
 * Throws `forbidden`, `reaction_not_found`.
 */
export async function removeReaction(ctx: Context, actor: Actor, reactionId: string): Promise<string> {
  requireChange(actor);
  const commentId = REACTION_ID.exec(reactionId)?.[1];
  if (commentId === undefined) throw reactionNotFound();
  try {
    await requireCommentAccess(ctx, actor, commentId);
    await remove(ctx, actor, commentId, reactionId);
  } catch (thrown) {
    throw thrown instanceof CollabError && thrown.code === 'comment_not_found' ? reactionNotFound() : thrown;
  }
  return DELETED;
}

function remove(ctx: Context, actor: Actor, commentId: string, reactionId: string): Promise<void> {
  const environmentId = actor.environment.id;
  return commentLocks.run(`${environmentId} ${commentId}`, () =>
    ctx.store.transact(async (tx) => {
      const located = await requireComment(tx, environmentId, commentId);
      const { comment, thread } = located;
      requireChange(actor, thread.roomId);
      const reaction = comment.reactions.find(({ id }) => id === reactionId);
      if (reaction === undefined) throw reactionNotFound();
      requireAuthor(actor, reaction.userId, 'reaction');
      const now = await nextTimeInThread(ctx, tx, located.partition);
      const { threadId, userId, emoji } = reaction;
      putReactions(
        tx,
        actor,
        located,
        comment.reactions.filter(({ id }) => id !== reactionId),
        now,
      );
      const data = JSON.stringify({ reactionId, commentId, threadId, userId, emoji });
      emitReaction(tx, actor, thread, { type: 'reaction.deleted', now, userId: actorUserId(actor), data });
      await recordModeration(ctx, tx, actor, userId, {
        action: 'reaction.delete',
        target: { kind: 'reaction', id: reactionId },
      });
    }),
  );
}

function parseDraft(actor: Actor, input: unknown, limits: Limits): ReactionCreate {
  const draft =
    actor.kind === 'user'
      ? { ...validate(createByUser, input), userId: actor.userId }
      : validate(createByBackend, input);
  checkId('userId', draft.userId, limits);
  const emoji = canonicalEmoji(draft.emoji);
  if (!isEmoji(emoji)) throw invalidField('emoji', 'must be one emoji or a :shortcode:, 1 to 64 bytes of UTF-8', emoji);
  return { ...draft, emoji };
}

/** Throws `invalid_request` unless the reactions of an imported comment are such as `addReaction` creates. */
export function checkReactions(
  { id, threadId, reactions }: Pick<Comment, 'id' | 'threadId' | 'reactions'>,
  limits: Limits,
): void {
  for (const [index, reaction] of reactions.entries()) {
    const field = `reactions[${index}]`;
    if (REACTION_ID.exec(reaction.id)?.[1] !== id || reaction.reactionId !== reaction.id)
      throw invalid(`${field}.id and reactionId must be re_, 1 to 32 letters and digits, _ and the id of the comment`);
    if (reaction.commentId !== id || reaction.threadId !== threadId)
      throw invalid(`${field} must name the comment and the thread that it is in`);
    checkId(`${field}.userId`, reaction.userId, limits);
    if (!isEmoji(reaction.emoji))
      throw invalidField(
        `${field}.emoji`,
        'must be one emoji or a :shortcode:, 1 to 64 bytes of UTF-8',
        reaction.emoji,
      );
  }
  const last = reactions.at(-1);
  if (last !== undefined) checkCapacity(reactions.slice(0, -1), last.emoji, limits);
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

/** Throws `invalid_request` if one more reaction with this emoji would exceed a limit. */
function checkCapacity(
  reactions: readonly Reaction[],
  emoji: string,
  { emojiPerComment, reactionsPerComment }: Limits,
): void {
  const distinct = new Set(reactions.map((reaction) => canonicalEmoji(reaction.emoji))).add(canonicalEmoji(emoji));
  if (distinct.size > emojiPerComment)
    throw new CollabError('invalid_request', `A comment takes at most ${emojiPerComment} different emoji`);
  if (reactions.length >= reactionsPerComment)
    throw new CollabError('invalid_request', `A comment takes at most ${reactionsPerComment} reactions`);
}

interface LocatedComment extends CommentLocation {
  readonly comment: Comment;
  readonly thread: ThreadRecord;
}

function putReactions(
  tx: Transaction,
  actor: Actor,
  { partition, key, comment, thread }: LocatedComment,
  reactions: readonly Reaction[],
  now: number,
): void {
  const at = timestamp(now);
  const changed: Comment = { ...comment, reactions };
  putRecord(tx, partition, key, changed);
  updateThreadStats(tx, partition, at, 0);
  touchRoom(tx, actor.environment.id, thread.roomId, at);
}

interface ReactionChange {
  readonly type: EventType;
  readonly now: number;
  readonly userId: string | null;
  readonly data: string;
}

function emitReaction(
  tx: Transaction,
  actor: Actor,
  thread: ThreadRecord,
  { type, now, userId, data }: ReactionChange,
): void {
  emitChange(tx, actor.environment, {
    type,
    at: now,
    roomId: thread.roomId,
    threadId: thread.id,
    userId,
    via: actor.via,
    data,
  });
}

const renderReaction = (reaction: Reaction): string => `{"reaction":${JSON.stringify(reaction)}}`;

const reactionNotFound = (): CollabError => new CollabError('reaction_not_found', 'Reaction not found');
