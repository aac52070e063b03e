import type { Attachment } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { Reaction } from '../../model/reaction.ts';
import type { Position, Thread } from '../../model/thread.ts';
import { changeComment, commentIn, firstCommentId, type RoomBase } from './base.ts';
import type { NewComment, NewThread } from './room.ts';
import type { RoomComment, RoomThread } from './snapshot.ts';

/**
 * A write that the server has not confirmed, or whose event has not arrived yet. It is shown on top of the server's
 * state.
 */
export interface PendingWrite {
  readonly threadId: string;
  /** The thread with the change; null for a thread that is not there, or no longer. */
  apply(thread: RoomThread | null): RoomThread | null;
  /**
   * Whether the state of the server shows the change. Called after each change of that state, and once at the
   * beginning.
   */
  isShownBy(base: RoomBase): boolean;
  /** The server has confirmed the write with this record. */
  confirm?(record: unknown): void;
}

/** The author of writes, and the files that they have uploaded. */
export interface Writer {
  readonly userId: string;
  readonly attachments: (ids: readonly string[]) => readonly Attachment[];
}

/** A new thread, which the server knows once its event or a list has its id. */
export function pendingThread(writer: Writer, roomId: string, id: string, input: NewThread): PendingWrite {
  const createdAt = new Date().toISOString();
  const { position = null, metadata = {} } = input;
  const thread: Thread = {
    id,
    roomId,
    resolved: false,
    positionX: position?.x ?? null,
    positionY: position?.y ?? null,
    position,
    metadata,
    commentCount: 1,
    userId: writer.userId,
    createdAt,
    updatedAt: createdAt,
    resolvedAt: null,
    resolvedBy: null,
  };
  const first = newComment(writer, firstCommentId(id), id, { ...input, metadata: {} }, createdAt);
  return {
    threadId: id,
    apply: (existing) => existing ?? { ...thread, comments: [first], pending: 'create' },
    isShownBy: (base) => !!base.get(id),
  };
}

/** A new comment. */
export function pendingComment(writer: Writer, threadId: string, id: string, input: NewComment): PendingWrite {
  const comment = newComment(writer, id, threadId, input, new Date().toISOString());
  return {
    threadId,
    apply: (thread) =>
      !thread || thread.comments.some((other) => other.id === id)
        ? thread
        : withComments(thread, [...thread.comments, comment]),
    isShownBy: (base) => !!commentIn(base.get(threadId), id),
  };
}

/** A changed comment, which the server's state shows once it has the edit time that the server has confirmed. */
export function pendingUpdate(
  writer: Writer,
  threadId: string,
  id: string,
  { body, mentions, attachmentIds, metadata }: NewComment,
): PendingWrite {
  const editedAt = new Date().toISOString();
  const change = (comment: RoomComment): RoomComment => ({
    ...comment,
    body,
    mentions: mentions ?? comment.mentions,
    attachments:
      attachmentIds === undefined
        ? comment.attachments
        : [...comment.attachments, ...writer.attachments(attachmentIds)].filter(
            (one, at, all) => attachmentIds.includes(one.id) && all.findIndex((other) => other.id === one.id) === at,
          ),
    metadata: metadata ?? comment.metadata,
    editedAt,
    pending: comment.pending ?? 'update',
  });
  let confirmed: string | null = null;
  let known = false;
  return {
    threadId,
    apply: (thread) => changeThread(thread, id, change),
    isShownBy: (base) => {
      const comment = commentIn(base.get(threadId), id);
      known ||= !!comment;
      return !comment ? known : confirmed !== null && (comment.editedAt ?? '') >= confirmed;
    },
    confirm: (record) => {
      confirmed = (record as Comment | undefined)?.editedAt ?? '';
    },
  };
}

/** A deleted comment. The thread goes with its last one. */
export function pendingDeletion(threadId: string, id: string): PendingWrite {
  let known = false;
  return {
    threadId,
    apply: (thread) => {
      const changed = changeThread(thread, id, () => null);
      return changed?.commentCount === 0 ? null : changed;
    },
    isShownBy: (base) => {
      const exists = !!commentIn(base.get(threadId), id);
      known ||= exists;
      return known && !exists;
    },
  };
}

/** A thread that is resolved or reopened. */
export function pendingResolve(writer: Writer, threadId: string, resolved: boolean): PendingWrite {
  const at = new Date().toISOString();
  const change = { resolved, resolvedAt: resolved ? at : null, resolvedBy: resolved ? writer.userId : null };
  return {
    threadId,
    apply: (thread) =>
      !thread || thread.resolved === resolved ? thread : { ...thread, ...change, pending: thread.pending ?? 'update' },
    isShownBy: (base) => (base.get(threadId)?.thread.resolved ?? resolved) === resolved,
  };
}

/**
 * A thread that is pinned to another place, which the server's state shows once it has the new coordinates and
 * selector.
 */
export function pendingMove(threadId: string, position: Position): PendingWrite {
  const isThere = (other: Position | null | undefined): boolean =>
    other?.x === position.x && other.y === position.y && other.selector === position.selector;
  return {
    threadId,
    apply: (thread) =>
      thread && {
        ...thread,
        position,
        positionX: position.x,
        positionY: position.y,
        pending: thread.pending ?? 'update',
      },
    isShownBy: (base) => isThere(base.get(threadId)?.thread.position),
  };
}

/** The id that a reaction of this user has until the server has confirmed it. */
export const pendingReactionId = (commentId: string, emoji: string): string => `pending-${emoji}-${commentId}`;

/** A new reaction. */
export function pendingReaction(
  writer: () => Writer,
  threadId: string,
  commentId: string,
  emoji: string,
): PendingWrite {
  const id = pendingReactionId(commentId, emoji);
  const reaction: Reaction = {
    id,
    reactionId: id,
    commentId,
    threadId,
    userId: writer().userId,
    emoji,
    createdAt: new Date().toISOString(),
  };
  const isThis = sameAs(reaction, writer);
  return {
    threadId,
    apply: (thread) =>
      changeReactions(thread, commentId, (reactions) =>
        reactions.some(isThis) ? reactions : [...reactions, reaction],
      ),
    isShownBy: (base) => commentIn(base.get(threadId), commentId)?.reactions.some(isThis) ?? false,
  };
}

/** A removed reaction, if it is known. */
export function pendingUnreaction(writer: () => Writer, reaction: Reaction | undefined): PendingWrite {
  const { threadId = '', commentId = '' } = reaction ?? {};
  const isThis = sameAs(reaction, writer);
  return {
    threadId,
    apply: (thread) => changeReactions(thread, commentId, (reactions) => reactions.filter((other) => !isThis(other))),
    isShownBy: (base) => !commentIn(base.get(threadId), commentId)?.reactions.some(isThis),
  };
}

/**
 * Whether another object is the same reaction, confirmed or not. The own user is not known before the first connection.
 */
function sameAs(reaction: Reaction | undefined, writer: () => Writer): (other: Reaction) => boolean {
  return (other) => other.emoji === reaction?.emoji && other.userId === (reaction.userId || writer().userId);
}

function newComment(
  writer: Writer,
  id: string,
  threadId: string,
  { body, mentions = [], attachmentIds = [], metadata = {} }: NewComment,
  createdAt: string,
): RoomComment {
  const attachments = writer.attachments(attachmentIds);
  return {
    id,
    threadId,
    userId: writer.userId,
    body,
    mentions,
    attachments,
    reactions: [],
    metadata,
    createdAt,
    editedAt: null,
    pending: 'create',
  };
}

function withComments(thread: RoomThread, comments: readonly RoomComment[]): RoomThread {
  return { ...thread, comments, commentCount: comments.length };
}

function changeReactions(
  thread: RoomThread | null,
  commentId: string,
  change: (reactions: readonly Reaction[]) => readonly Reaction[],
): RoomThread | null {
  return changeThread(thread, commentId, (comment) => ({ ...comment, reactions: change(comment.reactions) }));
}

function changeThread(
  thread: RoomThread | null,
  id: string,
  change: (comment: RoomComment) => RoomComment | null,
): RoomThread | null {
  return thread && withComments(thread, changeComment(thread, thread.comments, id, change));
}
