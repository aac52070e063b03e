import type { Comment } from '../../model/comment.ts';
import type { App } from './app.ts';

/** Something that the user wrote and a moderator has rejected, or removed after reports. */
export interface Rejection {
  readonly id: string;
  readonly kind: 'comment' | 'thread' | 'edit' | 'report';
  readonly state: string;
  readonly roomId: string;
  readonly threadId: string;
  readonly comment: Comment;
  /** The reason, for the author. */
  readonly rejection: string | null;
  readonly decidedAt: string | null;
}

/** The most that is read, of the latest 30 days; and the most that is remembered as dismissed. */
const MAX_ITEMS = 100;

const byApp = new WeakMap<App, Rejections>();

/**
 * What moderators have rejected of the user in the room of an app. Loads it with the first call, and again after each
 * rejection.
 */
export function rejectionsOf(app: App): Rejections {
  const known = byApp.get(app);
  if (known !== undefined) return known;
  const rejections = new Rejections(app);
  byApp.set(app, rejections);
  return rejections;
}

/** The rejected content of the user, until the user dismisses it. */
export class Rejections {
  readonly #app: App;
  #items: readonly Rejection[] = [];
  #loadedFor: string | null = null;

  constructor(app: App) {
    this.#app = app;
    app.onStop(
      app.session.on('event', ({ type, userId, roomId }) => {
        if (type !== 'moderation.rejected' || userId !== app.userId || roomId !== app.room.roomId) return;
        app.storage.write('moderated', true);
        void this.#load();
      }),
    );
  }

  /**
   * Newest first; of one thread, or of all. Empty until it is loaded, which for a thread is done only if something of
   * the user was held or rejected in this browser.
   */
  of(threadId: string | null): readonly Rejection[] {
    const { userId, storage } = this.#app;
    if (userId !== null && this.#loadedFor !== userId && (threadId === null || this.#isModerated(threadId)))
      void this.#load();
    if (this.#items.length === 0) return this.#items;
    const dismissed = dismissedIn(storage);
    return this.#items.filter(
      (item) => (threadId === null || item.threadId === threadId) && !dismissed.includes(item.id),
    );
  }

  /** Shows an item no more in this browser. */
  dismiss(id: string): void {
    const { storage, host } = this.#app;
    storage.write('dismissed', [id, ...dismissedIn(storage)].slice(0, MAX_ITEMS));
    host.changed();
  }

  /** Whether something of the user was held or rejected in this browser; notes it. */
  #isModerated(threadId: string): boolean {
    const { storage } = this.#app;
    if (storage.read('moderated') === true) return true;
    const isHeld = this.#app.thread(threadId)?.comments.some(({ status }) => status === 'held') === true;
    if (isHeld) storage.write('moderated', true);
    return isHeld;
  }

  async #load(): Promise<void> {
    const { userId, session, room, host } = this.#app;
    if (userId === null) return;
    // The session may be that of another user since.
    if (this.#loadedFor !== userId) this.#items = [];
    this.#loadedFor = userId;
    try {
      const answer = await session.fetch(
        `/users/${encodeURIComponent(userId)}/held?limit=${MAX_ITEMS}&sort=updatedAt&order=desc`,
      );
      const { items } = (await answer.json()) as { readonly items: readonly Rejection[] };
      if (this.#app.userId !== userId) return;
      this.#items = items.filter(({ state, roomId }) => state === 'rejected' && roomId === room.roomId);
      host.changed();
    } catch {
      // Without it the threads are complete. It is tried again with the next rejection, and when the page is loaded
      // again.
    }
  }
}

function dismissedIn(storage: App['storage']): readonly string[] {
  const stored = storage.read('dismissed');
  return Array.isArray(stored) ? (stored as string[]) : [];
}
