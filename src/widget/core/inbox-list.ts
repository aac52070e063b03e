import type { InboxItem } from '../../client/inbox/inbox.ts';
import type { Comment } from '../../model/comment.ts';
import type { Thread } from '../../model/thread.ts';
import type { App } from './app.ts';

/** As many notifications as a page with its content has, and as the session keeps up to date. */
const PAGE = 100;
/** At least so long between two requests for what new notifications are about, in milliseconds. */
const PAUSE_MS = 2_000;

interface InboxPage {
  readonly items: readonly InboxItem[];
  readonly nextCursor?: string;
  readonly comments: Readonly<Record<string, Comment>>;
  readonly threads: Readonly<Record<string, Thread>>;
}

/**
 * The notifications of the user in all rooms, with what they are about. The newest are those of the session, which are
 * live; older ones are read when they are asked for.
 */
export class InboxList {
  readonly #app: App;
  readonly #ends: (() => void)[] = [];
  #newest: readonly InboxItem[] = [];
  #older: readonly InboxItem[] = [];
  #comments: Readonly<Record<string, Comment>> = {};
  #threads: Readonly<Record<string, Thread>> = {};
  /** The ids of notifications whose content was asked for, and of users whose names were. */
  readonly #asked = new Set<string>();
  #cursor: string | null = null;
  #loading = false;
  #loadedAt = Number.NEGATIVE_INFINITY;
  #timer = 0;
  /** Whether the last request failed; an inbox without anything to show says so. */
  failed = false;

  constructor(app: App) {
    this.#app = app;
    this.#ends.push(
      app.session.on('event', ({ type, data }) => {
        if (type === 'notification.read') this.#markRead(new Set(data.ids), data.readAt);
        else if (type === 'comment.updated' && data.id in this.#comments)
          this.#comments = { ...this.#comments, [data.id]: data };
      }),
    );
    void this.load();
  }

  /** Ends what it does by itself. */
  stop(): void {
    window.clearTimeout(this.#timer);
    for (const end of this.#ends.splice(0)) end();
  }

  /** Newest first. */
  get items(): readonly InboxItem[] {
    const { status, items } = this.#app.session.inbox.getSnapshot();
    const live = status === 'ready' ? items : this.#newest;
    const known = new Set(live.map(({ id }) => id));
    return [...live, ...this.#older.filter(({ id }) => !known.has(id))];
  }

  get isLoading(): boolean {
    return this.items.length === 0 && (this.#loading || this.#app.session.inbox.getSnapshot().status === 'loading');
  }

  /** Whether there are older notifications. */
  get hasMore(): boolean {
    return this.#cursor !== null;
  }

  /** The comment that a notification is about; null until it is known, and if it was deleted. */
  comment({ commentId }: InboxItem): Comment | null {
    return this.#app.comment(commentId) ?? this.#comments[commentId] ?? null;
  }

  /** The thread of a notification; null as for `comment`. */
  thread({ threadId }: InboxItem): Thread | null {
    return this.#app.thread(threadId) ?? this.#threads[threadId] ?? null;
  }

  /** Whether the thread of a notification was deleted. */
  isGone(item: InboxItem): boolean {
    return this.thread(item) === null && this.#asked.has(item.id) && !this.#loading && !this.failed;
  }

  /** Call it with every change: asks for the content of new notifications, and for the names of their authors. */
  follow(): void {
    const { items } = this;
    const { session, snapshot } = this.#app;
    const users = [...new Set(items.map(({ actorId }) => actorId))]
      .filter((id) => snapshot.users[id] === undefined && !this.#asked.has(id))
      .slice(0, PAGE);
    for (const id of users) this.#asked.add(id);
    // Without an answer they are shown by their ids.
    if (users.length > 0) void session.users(users).catch(() => undefined);
    if (this.#loading || this.failed || items.slice(0, PAGE).every(({ id }) => this.#asked.has(id))) return;
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.load(), Math.max(0, this.#loadedAt + PAUSE_MS - Date.now()));
  }

  /** Reads the newest page. */
  async load(): Promise<void> {
    const page = await this.#request('');
    if (page === null) return;
    this.#newest = page.items;
    if (this.#older.length === 0) this.#cursor = page.nextCursor ?? null;
    this.#app.host.changed();
  }

  /** Reads the next older page. */
  async more(): Promise<void> {
    const page = this.#cursor === null ? null : await this.#request(`&cursor=${encodeURIComponent(this.#cursor)}`);
    if (page === null) return;
    this.#older = [...this.#older, ...page.items];
    this.#cursor = page.nextCursor ?? null;
    this.#app.host.changed();
  }

  /** Null if another request is under way, and if it failed. */
  async #request(search: string): Promise<InboxPage | null> {
    const { session, userId, host } = this.#app;
    if (this.#loading || userId === null) return null;
    this.#loading = true;
    this.#loadedAt = Date.now();
    for (const { id } of this.items.slice(0, PAGE)) this.#asked.add(id);
    try {
      const page = (await (
        await session.fetch(`/users/${encodeURIComponent(userId)}/notifications?include=content&limit=${PAGE}${search}`)
      ).json()) as InboxPage;
      for (const { id } of page.items) this.#asked.add(id);
      this.#comments = { ...this.#comments, ...page.comments };
      this.#threads = { ...this.#threads, ...page.threads };
      this.failed = false;
      return page;
    } catch {
      this.failed = true;
      host.changed();
      return null;
    } finally {
      this.#loading = false;
    }
  }

  #markRead(ids: ReadonlySet<string>, readAt: string): void {
    const mark = (item: InboxItem): InboxItem => (ids.has(item.id) ? { ...item, readAt } : item);
    this.#newest = this.#newest.map(mark);
    this.#older = this.#older.map(mark);
    this.#app.host.changed();
  }
}
