import type { Notification } from '../../model/notification.ts';
import type { CollabError } from '../errors.ts';
import type { Unsubscribe } from '../platform.ts';

/** A notification in the inbox of a user. `readAt` is null while it is unread. */
export type InboxItem = Notification;

/** The state of an inbox: immutable, a new object after each change. */
export interface InboxSnapshot {
  /** `unavailable` if the server has no inbox; `failed` also if the session ended before the inbox was loaded. */
  readonly status: 'loading' | 'ready' | 'unavailable' | 'failed';
  readonly error: CollabError | null;
  /** Newest first. */
  readonly items: readonly InboxItem[];
  readonly unreadCount: number;
}

/** The inbox of the session's user: loaded and kept up to date while it has a subscriber. */
export interface CollabInbox {
  subscribe(listener: () => void): Unsubscribe;
  getSnapshot(): InboxSnapshot;
  /** Marks notifications as read, in the snapshot at once. */
  markRead(ids: readonly string[]): Promise<void>;
  markAllRead(): Promise<void>;
}
