import type { Comment } from '../../model/comment.ts';
import type { StreamEvent } from '../../model/frames.ts';
import type { Thread } from '../../model/thread.ts';

/** A thread as the server has it, with its comments, oldest first. Immutable: a change replaces it. */
export interface BaseThread {
  readonly thread: Thread;
  readonly comments: readonly Comment[];
}

/** A thread in the reply to `room.get` with `includeComments`. */
export type ListedThread = Thread & { readonly comments: readonly Comment[] };

/**
 * The threads of one room as the server has them: a loaded list and the events after it. The list may be newer than the
 * first events that are applied to it. Each event sets the state that it carries, whatever the state before, so the
 * result is right after the last one.
 */
export class RoomBase {
  readonly #threads = new Map<string, BaseThread>();
  #sorted: readonly BaseThread[] | null = null;

  /** Adds threads of a list. Called before anything else. */
  load(threads: readonly ListedThread[]): void {
    for (const { comments, ...thread } of threads) this.#set(withComments({ thread, comments }, comments));
  }

  get(threadId: string): BaseThread | undefined {
    return this.#threads.get(threadId);
  }

  /** The thread that has this comment. */
  threadOf(commentId: string): BaseThread | undefined {
    for (const entry of this.#threads.values()) if (commentIn(entry, commentId) !== undefined) return entry;
    return undefined;
  }

  /** All threads, newest first, as the server lists them. */
  get threads(): readonly BaseThread[] {
    this.#sorted ??= [...this.#threads.values()].sort(
      (a, b) => compare(b.thread.createdAt, a.thread.createdAt) || compare(b.thread.id, a.thread.id),
    );
    return this.#sorted;
  }

  /** Applies an event of the room. Returns whether something changed. */
  apply(event: StreamEvent): boolean {
    if (!event.threadId) return false;
    this.#sorted = null;
    if ((event.type === 'thread.created' || event.type === 'moderation.held') && event.data.thread) {
      const { thread, comment } = event.data;
      this.#set({ thread, comments: [comment] });
      return true;
    }
    const entry = this.#threads.get(event.threadId);
    if (!entry) return false;
    const changed = event.type === 'thread.deleted' ? null : applyToThread(entry, event);
    if (changed === entry) return false;
    // A thread goes with its last comment, also one that was held.
    if (changed?.comments[0]) this.#set(changed);
    else this.#threads.delete(event.threadId);
    return true;
  }

  #set(entry: BaseThread): void {
    this.#threads.set(entry.thread.id, entry);
  }
}

/** The id that the first comment of a thread has until the server has confirmed the thread. */
export const firstCommentId = (threadId: string): string => `${threadId}-first`;

/** Whether a comment of a thread has this id, or had it before the server confirmed the thread. */
function isComment({ id, createdAt, userId }: Comment, thread: Thread, commentId: string): boolean {
  // Of the comments of that user in the same millisecond, the first one has an id of the server.
  return (
    id === commentId ||
    (commentId === firstCommentId(thread.id) &&
      createdAt === thread.createdAt &&
      userId === thread.userId &&
      !id.startsWith('cm_c'))
  );
}

/** The comment of a thread with this id, as `isComment` understands it. */
export function commentIn(entry: BaseThread | undefined, id: string): Comment | undefined {
  return entry?.comments.find((comment) => isComment(comment, entry.thread, id));
}

function applyToThread(entry: BaseThread, event: StreamEvent): BaseThread {
  const { comments } = entry;
  switch (event.type) {
    case 'thread.updated':
    case 'thread.resolved':
    case 'thread.reopened':
      return withComments({ ...entry, thread: event.data }, comments, entry.thread.updatedAt);
    case 'comment.created':
    case 'comment.updated':
      return withComments(entry, putComment(comments, event.data), event.at);
    case 'comment.deleted':
      return withComments(
        entry,
        changeComment(entry.thread, comments, event.data.commentId, () => null),
        event.at,
      );
    case 'moderation.held':
      return withComments(entry, putComment(comments, event.data.comment));
    case 'moderation.rejected':
      return withComments(
        entry,
        changeComment(entry.thread, comments, event.data.commentId, (comment) =>
          comment.status ? comment.published : comment,
        ),
      );
    case 'reaction.created': {
      const reaction = event.data;
      return withComments(
        entry,
        changeComment(entry.thread, comments, reaction.commentId, (comment) => ({
          ...comment,
          reactions: [...comment.reactions.filter(({ id }) => id !== reaction.id), reaction],
        })),
        event.at,
      );
    }
    case 'reaction.deleted': {
      const { commentId, reactionId } = event.data;
      return withComments(
        entry,
        changeComment(entry.thread, comments, commentId, (comment) => ({
          ...comment,
          reactions: comment.reactions.filter(({ id }) => id !== reactionId),
        })),
        event.at,
      );
    }
    default:
      return entry;
  }
}

/**
 * A thread whose comments have changed. The server counts them, without those that were never published, and sets the
 * time of the last change, in the same way.
 */
function withComments({ thread }: BaseThread, comments: readonly Comment[], at = ''): BaseThread {
  return {
    thread: {
      ...thread,
      commentCount: comments.filter((comment) => comment.published ?? !comment.status).length,
      updatedAt: at > thread.updatedAt ? at : thread.updatedAt,
    },
    comments,
  };
}

function putComment(comments: readonly Comment[], comment: Comment): readonly Comment[] {
  const others = comments.filter(({ id }) => id !== comment.id);
  let at = others.length;
  while (at > 0 && follows(others[at - 1], comment)) at--;
  return [...others.slice(0, at), comment, ...others.slice(at)];
}

/** The comments of a thread with one of them changed, or taken away. */
export function changeComment<C extends Comment>(
  thread: Thread,
  comments: readonly C[],
  id: string,
  change: (comment: C) => C | null | undefined,
): readonly C[] {
  return comments.flatMap((comment) => (isComment(comment, thread, id) ? (change(comment) ?? []) : [comment]));
}

function follows(earlier: Comment | undefined, comment: Comment): boolean {
  if (!earlier) return false;
  return (compare(earlier.createdAt, comment.createdAt) || compare(tieBreak(earlier.id), tieBreak(comment.id))) > 0;
}

/**
 * The part of an id that orders comments of the same millisecond: the random end of a generated id, or the whole of a
 * chosen one.
 */
function tieBreak(id: string): string {
  return /^cm_[0-9a-z]{20}_[0-9a-z]{9}([0-9a-z]{7})$/.exec(id)?.[1] ?? id;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
