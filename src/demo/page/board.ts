import type { Comment } from '../../model/comment.ts';
import type { Thread } from '../../model/thread.ts';
import type { ListedThread, ServerEvent } from './protocol.ts';

/** A thread as the page shows it; comments are in the order of their creation. */
export interface BoardThread {
  thread: Thread;
  comments: Comment[];
}

/**
 * The threads of one room, built from a list and the events that follow it. The list may be newer than the first events
 * applied to it: each event sets the state it carries, whatever the state before, so the board is right after the last one.
 */
export class Board {
  readonly #room: string;
  #threads = new Map<string, BoardThread>();

  constructor(room: string) {
    this.#room = room;
  }

  /** All threads, newest first. */
  get threads(): BoardThread[] {
    return [...this.#threads.values()].sort((a, b) => (b.thread.createdAt + b.thread.id < a.thread.createdAt + a.thread.id ? -1 : 1));
  }

  /** Replaces everything by a list. */
  load(threads: readonly ListedThread[]): void {
    this.#threads = new Map(threads.map(({ comments, ...thread }) => [thread.id, { thread, comments: [...comments] }]));
  }

  /** Applies an event. Returns whether the board changed. */
  apply(event: ServerEvent): boolean {
    if (event.roomId !== this.#room || event.threadId === undefined) return false;
    if (event.type === 'thread.created') {
      const { thread, comment } = event.data as { thread: Thread; comment: Comment };
      this.#threads.set(thread.id, { thread, comments: [comment] });
      return true;
    }
    if (event.type === 'thread.deleted') return this.#threads.delete(event.threadId);

    const known = this.#threads.get(event.threadId);
    if (known === undefined) return false;
    switch (event.type) {
      case 'thread.updated':
      case 'thread.resolved':
      case 'thread.reopened':
        known.thread = event.data as Thread;
        return true;
      case 'comment.created':
      case 'comment.updated':
        return replace(known.comments, event.data as Comment, event.type === 'comment.created');
      case 'comment.deleted':
        return remove(known.comments, (event.data as { commentId: string }).commentId);
      default:
        return false;
    }
  }
}

function replace(comments: Comment[], comment: Comment, append: boolean): boolean {
  const at = comments.findIndex(({ id }) => id === comment.id);
  if (at < 0 && !append) return false;
  comments.splice(at < 0 ? comments.length : at, at < 0 ? 0 : 1, comment);
  return true;
}

function remove(comments: Comment[], id: string): boolean {
  const at = comments.findIndex((comment) => comment.id === id);
  if (at < 0) return false;
  comments.splice(at, 1);
  return true;
}
