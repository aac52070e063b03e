import type { CollabRoom } from '../../client/room/room.ts';
import type { RoomComment, RoomThread } from '../../client/room/snapshot.ts';
import type { Language } from '../strings/language.ts';
import type { Toasts } from './toasts.ts';
import type { View } from './view.ts';

/** The part of the app that deletions work with. */
interface Deleting {
  readonly room: CollabRoom;
  readonly view: View;
  readonly toasts: Toasts;
  readonly language: Language;
  readonly host: { changed(): void };
  thread(threadId: string): RoomThread | null;
  comment(commentId: string): RoomComment | null;
  openThread(threadId: string, commentId: string): void;
  close(): void;
  attempt<T>(write: () => Promise<T>): Promise<T | null>;
}

/**
 * Deletions that can still be undone: the comments are hidden here, and deleted on the server once the message has
 * gone.
 */
export class Deletions {
  readonly #app: Deleting;
  readonly #hidden = new Set<string>();
  #from: readonly RoomThread[] = [];
  #without: readonly RoomThread[] | null = null;

  constructor(app: Deleting) {
    this.#app = app;
  }

  /** Hides a comment, and deletes it unless the user takes that back. */
  delete(commentId: string, threadId: string): void {
    const app = this.#app;
    const comment = app.comment(commentId);
    // With an edit that is held, the comment itself is published.
    const isHeld = comment?.status === 'held' && comment.published === undefined;
    this.#change(() => this.#hidden.add(commentId));
    const isLast = app.thread(threadId) === null;
    if (isLast && app.view.open?.threadId === threadId) app.close();
    app.toasts.add({
      kind: 'info',
      text: app.language.text(isHeld ? 'withdrawn' : isLast ? 'threadDeleted' : 'deleted'),
      action: { label: app.language.text('undo'), run: () => this.#undo(commentId, threadId) },
      expired: () => void this.#commit(commentId),
    });
  }

  /** The threads without what is hidden: the same array while nothing is. */
  without(threads: readonly RoomThread[]): readonly RoomThread[] {
    if (this.#hidden.size === 0) return threads;
    if (this.#without === null || this.#from !== threads) {
      this.#from = threads;
      this.#without = threads.flatMap((thread) => {
        const comments = thread.comments.filter(({ id }) => !this.#hidden.has(id));
        if (comments.length === thread.comments.length) return [thread];
        return comments.length === 0 ? [] : [{ ...thread, comments, commentCount: comments.length }];
      });
    }
    return this.#without;
  }

  /** Deletes at once what is hidden, e.g. because the page is being left. */
  flush(): void {
    for (const commentId of [...this.#hidden]) void this.#commit(commentId);
  }

  async #commit(commentId: string): Promise<void> {
    if (!this.#hidden.has(commentId)) return;
    const deleting = this.#app.room.deleteComment(commentId);
    this.#change(() => this.#hidden.delete(commentId));
    await this.#app.attempt(() => deleting);
  }

  #undo(commentId: string, threadId: string): void {
    this.#change(() => this.#hidden.delete(commentId));
    this.#app.openThread(threadId, commentId);
  }

  #change(change: () => void): void {
    change();
    this.#without = null;
    this.#app.host.changed();
  }
}
