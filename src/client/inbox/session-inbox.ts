import type { StreamEvent } from '../../model/frames.ts';
import { Observable } from '../emitter.ts';
import { asCollabError, type CollabError } from '../errors.ts';
import type { Unsubscribe } from '../platform.ts';
import type { SessionLink } from '../session/link.ts';
import type { CollabInbox, InboxItem, InboxSnapshot } from './inbox.ts';

/** Notifications that the snapshot holds; older ones are only counted. */
const ITEMS = 100;
/** The server removes the notifications of a deleted comment within about this time, without an event. */
const REMOVAL_MS = 2_000;
/** Deletions that are remembered. */
const DELETIONS = 1_000;

interface InboxPage {
  readonly items: readonly InboxItem[];
  readonly unreadCount: number;
}

/**
 * The inbox of a session, see `CollabInbox`. An event about it makes it load the newest notifications again, because
 * the number of unread ones counts those that are not loaded. Notifications of a deleted comment are left out at once.
 */
export class SessionInbox implements CollabInbox {
  readonly #link: SessionLink;
  readonly #observers = new Observable();
  #snapshot: InboxSnapshot = { status: 'loading', error: null, items: [], unreadCount: 0 };
  #loading = false;
  #stale = false;
  /** Ids of deleted comments and threads. */
  readonly #deleted = new Set<string>();
  #removal: ReturnType<typeof setTimeout> | undefined;

  constructor(link: SessionLink) {
    this.#link = link;
  }

  subscribe(listener: () => void): Unsubscribe {
    const first = !this.#observers.hasListeners;
    const unsubscribe = this.#observers.subscribe(listener);
    this.#link.wake();
    if (first && this.#link.isLive()) void this.#load();
    this.#link.notifyEnd(this);
    return unsubscribe;
  }

  getSnapshot(): InboxSnapshot {
    return this.#snapshot;
  }

  markRead(ids: readonly string[]): Promise<void> {
    return this.#mark({ ids }, (item) => ids.includes(item.id));
  }

  markAllRead(): Promise<void> {
    return this.#mark({ all: true }, () => true);
  }

  /** The session has a new connection. */
  connected(): void {
    if (this.#observers.hasListeners) void this.#load();
  }

  /** The session ended: an inbox that is not loaded will not be. */
  ended(error: CollabError): void {
    if (this.#snapshot.status === 'loading') this.#set({ status: 'failed', error });
  }

  /** An event of the environment. */
  receive(event: StreamEvent): void {
    if (event.type === 'comment.deleted') this.#forget(event.data.commentId);
    else if (event.type === 'thread.deleted') this.#forget(event.data.threadId);
    else if (event.type.startsWith('notification.') && this.#observers.hasListeners) void this.#load();
  }

  /** Leaves out the notifications of a deleted comment or thread, and loads again once the server has removed them. */
  #forget(id: string): void {
    if (!this.#observers.hasListeners) return;
    this.#deleted.add(id);
    for (const oldest of this.#deleted) if (this.#deleted.size > DELETIONS) this.#deleted.delete(oldest);
    const left = this.#withoutDeleted(this.#snapshot);
    if (left.items.length < this.#snapshot.items.length) this.#set(left);
    clearTimeout(this.#removal);
    this.#removal = setTimeout(() => {
      if (this.#observers.hasListeners && this.#link.isLive()) void this.#load();
    }, REMOVAL_MS);
  }

  #withoutDeleted({ items, unreadCount }: InboxPage): InboxPage {
    const isDeleted = ({ commentId, threadId }: InboxItem): boolean =>
      this.#deleted.has(commentId) || this.#deleted.has(threadId);
    const unread = items.filter((item) => item.readAt === null && isDeleted(item)).length;
    return { items: items.filter((item) => !isDeleted(item)), unreadCount: Math.max(0, unreadCount - unread) };
  }

  async #mark(what: object, isMarked: (item: InboxItem) => boolean): Promise<void> {
    const readAt = new Date().toISOString();
    const marked = this.#snapshot.items.filter((item) => item.readAt === null && isMarked(item));
    const items = this.#snapshot.items.map((item) => (marked.includes(item) ? { ...item, readAt } : item));
    this.#set({ items, unreadCount: 'all' in what ? 0 : Math.max(0, this.#snapshot.unreadCount - marked.length) });
    try {
      await this.#link.requests.request('notifications.read', what, { durable: true });
    } finally {
      void this.#load();
    }
  }

  async #load(): Promise<void> {
    this.#stale = true;
    if (this.#loading) return;
    this.#loading = true;
    try {
      while (this.#stale) {
        this.#stale = false;
        const page = (await this.#link.requests.request('notifications.list', { limit: ITEMS })) as InboxPage;
        this.#set({ status: 'ready', error: null, ...this.#withoutDeleted(page) });
      }
    } catch (thrown) {
      const error = asCollabError(thrown, 'Loading the inbox');
      // A server of an earlier release does not know the message.
      if (error.code !== 'network')
        this.#set({ status: error.code === 'invalid_request' ? 'unavailable' : 'failed', error });
    } finally {
      this.#loading = false;
    }
  }

  #set(change: Partial<InboxSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    this.#observers.changed();
  }
}
