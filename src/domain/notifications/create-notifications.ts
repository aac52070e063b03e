import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Notification, NotificationCreated, NotificationKind } from '../../model/notification.ts';
import type { Transaction } from '../../ports/store.ts';
import { findLocation } from '../comments/comment-location.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { DELETIONS_KEY, notifiedOf, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { addNotification, notificationId, notificationKey } from './notification-records.ts';
import { notifiedKey, type NotifiedUsers, putNotified, readNotified, USERS_PER_RECORD } from './notified-users.ts';

/** A user to notify, and whether the inbox shows it. */
export interface Recipient {
  readonly userId: string;
  readonly kind: NotificationKind;
  readonly inApp: boolean;
}

/** Whether a comment exists. If it is deleted before the commit, the transaction runs again; other changes do not matter. */
export async function commentIsThere({ store }: Context, tx: Transaction, environmentId: string, { id, threadId }: Comment): Promise<boolean> {
  const partition = threadRecordsOf(environmentId, threadId);
  // Every deletion of a comment writes one of these two.
  if ((await tx.get(partition, THREAD_KEY)) === undefined) return false;
  await tx.get(partition, DELETIONS_KEY);
  const location = await findLocation(store, environmentId, id);
  return location !== undefined && (await store.get(location.partition, location.key)) !== undefined;
}

/**
 * Creates the notifications of a comment or an edit in a transaction, with their events. Users who were notified of the comment
 * before are left out.
 *
 * @param actorId the author of the comment or edit
 */
export async function createNotifications(tx: Transaction, environment: Environment, event: EventEnvelope, { id, threadId }: Comment, actorId: string, recipients: readonly Recipient[]): Promise<void> {
  const before = new Set((await readNotified(tx, environment.id, threadId, id)).flatMap(({ users }) => users));
  const fresh = recipients.filter(({ userId }) => !before.has(userId));
  for (let n = 0; n * USERS_PER_RECORD < fresh.length; n++) {
    const part = fresh.slice(n * USERS_PER_RECORD, (n + 1) * USERS_PER_RECORD);
    const key = notifiedKey(id, event.seq, n);
    // Read in the transaction, so that another process with the same event conflicts.
    const stored = await tx.get(notifiedOf(environment.id, threadId), key);
    const users = [...(stored === undefined ? [] : (JSON.parse(stored) as NotifiedUsers).users), ...part.map(({ userId }) => userId)];
    putNotified(tx, environment.id, threadId, key, { at: event.at, users });
    for (const recipient of part) createNotification(tx, environment, event, id, actorId, recipient);
  }
}

function createNotification(tx: Transaction, environment: Environment, event: EventEnvelope, commentId: string, actorId: string, recipient: Recipient): void {
  const { inApp } = recipient;
  const notification = notificationOf(event, commentId, actorId, recipient);
  addNotification(tx, environment.id, { key: notificationKey(notification.userId, commentId, event.at), inApp, notification });
  emitNotification(tx, environment, notification, inApp, event);
}

/** The notification of a user about the comment or edit of an event. */
function notificationOf({ at, roomId = '', threadId = '' }: EventEnvelope, commentId: string, actorId: string, { userId, kind }: Pick<Recipient, 'userId' | 'kind'>): Notification {
  return { id: notificationId(notificationKey(userId, commentId, at)), userId, kind, roomId, threadId, commentId, actorId, readAt: null, createdAt: at, updatedAt: at };
}

/** Whether the inbox shows a notification that is about to be created: the settings of the user and the filters of plugins must allow it. */
export async function isShown({ inboxFilter }: Context, environment: Environment, event: EventEnvelope, commentId: string, actorId: string, { userId, kind, inApp }: Recipient): Promise<boolean> {
  if (!inApp || inboxFilter === undefined) return inApp;
  return inboxFilter({ id: environment.id, slug: environment.slug }, notificationOf(event, commentId, actorId, { userId, kind }));
}

/** Emits `notification.created`. `cause` is the event of the comment or edit. */
export function emitNotification(tx: Transaction, environment: Environment, notification: Notification, inApp: boolean, cause: EventEnvelope): void {
  const { userId, roomId, threadId, actorId } = notification;
  const data: NotificationCreated = { ...notification, inApp };
  emitChange(tx, environment, { type: 'notification.created', at: Date.parse(cause.at), roomId, threadId, receiverId: userId, userId: actorId, via: cause.actor.via, data: JSON.stringify(data) });
}
