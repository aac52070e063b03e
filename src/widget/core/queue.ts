import type { Comment } from '../../model/comment.ts';
import type { ModerationKind, Report } from '../../model/moderation.ts';
import type { App } from './app.ts';
import { asProblem } from './problems.ts';

/** An item of the moderation queue, as moderators read it. */
export interface QueueItem {
  readonly id: string;
  readonly kind: ModerationKind;
  readonly state: 'held' | 'reported';
  readonly threadId: string;
  readonly commentId: string;
  /** The author. */
  readonly userId: string;
  /** The plugin that held it, and why; null for a report. */
  readonly plugin: string | null;
  readonly reason: string | null;
  /** The comment as it was held or first reported. */
  readonly comment: Comment | null;
  /** Of a report, the comment as it is now; null if it was deleted. */
  readonly current: Comment | null;
  /** Of an edit, the comment as others see it. */
  readonly before: Comment | null;
  readonly reportCount: number;
  readonly reports: readonly Report[];
  readonly createdAt: string;
}

const STATES = ['held', 'reported'] as const;
/** At most so many items of each state are shown: the oldest, which have waited longest. */
const LIMIT = 100;
/** At least so long between two requests for the queue, in milliseconds. */
const PAUSE_MS = 1_000;

const byApp = new WeakMap<App, Queue>();

/** The moderation queue of the room of an app. The first call loads it; then it follows the events. */
export function queueOf(app: App): Queue {
  const known = byApp.get(app);
  if (known !== undefined) return known;
  const queue = new Queue(app);
  byApp.set(app, queue);
  return queue;
}

/** What waits for the decision of a moderator in a room. */
export class Queue {
  readonly #app: App;
  /** Oldest first; held content before reports. */
  items: readonly QueueItem[] = [];
  status: 'loading' | 'ready' | 'failed' = 'loading';
  #isReading = false;
  #isStale = false;
  #timer = 0;

  constructor(app: App) {
    this.#app = app;
    app.onStop(() => window.clearTimeout(this.#timer));
    app.onStop(
      app.session.on('event', ({ type, roomId }) => {
        if (type.startsWith('moderation.') && roomId === app.room.roomId) this.#reload();
      }),
    );
    void this.load();
  }

  /** Reads the queue. Never rejects: `status` says whether it failed. */
  async load(): Promise<void> {
    const app = this.#app;
    this.#isReading = true;
    this.#isStale = false;
    try {
      const room = encodeURIComponent(app.room.roomId);
      const pages = await Promise.all(
        STATES.map(
          async (state) =>
            (await app.session.fetch(`/moderation?state=${state}&roomId=${room}&limit=${LIMIT}`)).json() as Promise<{
              readonly items: readonly QueueItem[];
            }>,
        ),
      );
      this.items = pages.flatMap(({ items }) => items);
      this.status = 'ready';
      const users = [
        ...new Set(
          this.items.flatMap(({ userId, reports }) => [userId, ...reports.flatMap((report) => report.userId ?? [])]),
        ),
      ];
      // Without an answer they are shown by their ids.
      if (users.length > 0)
        void app.session
          .users(users.filter((id) => app.snapshot.users[id] === undefined).slice(0, LIMIT))
          .catch(() => undefined);
    } catch {
      this.status = 'failed';
    }
    this.#isReading = false;
    app.host.changed();
    if (this.#isStale) this.#reload();
  }

  /** Approves held content, or dismisses reports. Resolves with whether that was done now, by this user. */
  approve({ id }: QueueItem): Promise<boolean> {
    return this.#decide(id, 'approve');
  }

  /** Rejects held content, or deletes a reported comment. The author reads the reason. Resolves as `approve` does. */
  reject({ id }: QueueItem, reason: string): Promise<boolean> {
    return this.#decide(id, 'reject', { reason });
  }

  async #decide(id: string, decision: 'approve' | 'reject', body?: object): Promise<boolean> {
    const { session, toasts, language } = this.#app;
    const init = {
      method: 'POST',
      ...(body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
    };
    try {
      await session.fetch(`/moderation/${encodeURIComponent(id)}/${decision}`, init);
    } catch (thrown) {
      const { code } = asProblem(thrown);
      if (code === 'already_decided' || code === 'moderation_item_not_found')
        toasts.add({ kind: 'info', text: language.text('decidedBefore') });
      else this.#app.report(thrown);
      this.#reload();
      return false;
    }
    this.items = this.items.filter((item) => item.id !== id);
    this.#app.host.changed();
    return true;
  }

  #reload(): void {
    this.#isStale = true;
    if (this.#isReading) return;
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.load(), PAUSE_MS);
  }
}
