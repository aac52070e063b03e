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

interface Remembered {
  /** The storage that it is from: that of the user, who may change. */
  readonly storage: App['storage'];
  isModerated: boolean;
  dismissed: readonly string[];
}

/** The rejected content of the user, until the user dismisses it. */
export class Rejections {
  readonly #app: App;
  #items: readonly Rejection[] = [];
  #loadedFor: string | null = null;
  /** What the browser remembers for the user, read once: rendering asks for it each time. */
  #remembered: Remembered | null = null;

  constructor(app: App) {
    this.#app = app;
    app.onStop(
      app.session.on('event', ({ type, userId, roomId }) => {
        if (type !== 'moderation.rejected' || userId !== app.userId || roomId !== app.room.roomId) return;
        this.#noteModerated();
        void this.#load();
      }),
    );
  }

  /**
   * Newest first; of one thread, or of all. Empty until it is loaded, which for a thread is done only if something of
   * the user was held or rejected in this browser.
   */
  of(threadId: string | null): readonly Rejection[] {
    const { userId } = this.#app;
    if (userId !== null && this.#loadedFor !== userId && (threadId === null || this.#isModerated(threadId)))
      void this.#load();
    if (this.#items.length === 0) return this.#items;
    const { dismissed } = this.#memory();
    return this.#items.filter(
      (item) => (threadId === null || item.threadId === threadId) && !dismissed.includes(item.id),
    );
  }

  /** Shows an item no more in this browser. */
  dismiss(id: string): void {
    const { storage, host } = this.#app;
    const memory = this.#memory();
    // Another tab may have dismissed others since.
    memory.dismissed = [id, ...dismissedIn(storage)].slice(0, MAX_ITEMS);
    storage.write('dismissed', memory.dismissed);
    host.changed();
  }

  /** Whether something of the user was held or rejected in this browser; notes it. */
  #isModerated(threadId: string): boolean {
    if (this.#memory().isModerated) return true;
    const isHeld = this.#app.thread(threadId)?.comments.some(({ status }) => status === 'held') === true;
    if (isHeld) this.#noteModerated();
    return isHeld;
  }

  #noteModerated(): void {
    this.#memory().isModerated = true;
    this.#app.storage.write('moderated', true);
  }

  #memory(): Remembered {
    const { storage } = this.#app;
    if (this.#remembered?.storage !== storage)
      this.#remembered = {
        storage,
        isModerated: storage.read('moderated') === true,
        dismissed: dismissedIn(storage),
      };
    return this.#remembered;
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
