import type { Comment } from '../../model/comment.ts';
import type { Thread } from '../../model/thread.ts';
import type { ListedThread, ServerEvent } from './protocol.ts';

/** A thread as the page shows it: its comments are in the order they were written. */
export interface BoardThread {
  thread: Thread;
  comments: Comment[];
}

/**
 * The threads of one room, from a list and the events that follow it. A list may be newer than the first events applied
 * to it: each event sets what it says, whatever was there before, so after the last one the board is right.
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

  /** Forgets everything and starts from a list. */
  load(threads: readonly ListedThread[]): void {
    this.#threads = new Map(threads.map(({ comments, ...thread }) => [thread.id, { thread, comments: [...comments] }]));
  }

  /** Takes an event in. Returns whether it changed anything on the board. */
  apply(event: ServerEvent): boolean {
    if (event.roomId !== this.#room || event.threadId === undefined) return false;
    if (event.type === 'thread.created') {
      const { thread, comment } = event.data as { thread: Thread; comment: Comment };
      this.#threads.set(thread.id, { thread, comments: [comment] });
      return true;
    }
    if (event.type === 'thread.deleted') return this.#threads.delete(event.threadId);

    const held = this.#threads.get(event.threadId);
    if (held === undefined) return false;
    switch (event.type) {
      case 'thread.updated':
      case 'thread.resolved':
      case 'thread.reopened':
        held.thread = event.data as Thread;
        return true;
      case 'comment.created':
      case 'comment.updated':
        return place(held.comments, event.data as Comment, event.type === 'comment.created');
      case 'comment.deleted':
        return remove(held.comments, (event.data as { commentId: string }).commentId);
      default:
        return false;
    }
  }
}

function place(comments: Comment[], comment: Comment, append: boolean): boolean {
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
