import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Notification, NotificationCreated, NotificationKind } from '../../model/notification.ts';
import type { Transaction } from '../../ports/store.ts';
import { locationOf } from '../comments/comment-location.ts';
import type { Context } from '../context.ts';
import { emitChange } from '../events/emit.ts';
import { DELETIONS_KEY, THREAD_KEY, threadRecordsOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import { addNotification, notificationId, notificationKey } from './notification-records.ts';
import {
  isWithdrawn,
  notifiedKey,
  type NotifiedUsers,
  putNotified,
  readNotified,
  readNotifiedUsers,
  USERS_PER_RECORD,
} from './notified-users.ts';

/** A user to notify, and whether their inbox shows the notification. */
export interface Recipient {
  readonly userId: string;
  readonly kind: NotificationKind;
  readonly inApp: boolean;
}

/**
 * A comment as it is now; undefined if it does not exist. If it is deleted before the commit, the transaction runs
 * again; other changes do not matter.
 */
export async function readCurrent(
  tx: Transaction,
  environmentId: string,
  { id, threadId }: Comment,
): Promise<Comment | undefined> {
  const partition = threadRecordsOf(environmentId, threadId);
  // Every deletion of a comment writes one of these two. Both are read before the comment.
  const [thread] = await Promise.all([tx.get(partition, THREAD_KEY), tx.get(partition, DELETIONS_KEY)]);
  if (thread === undefined) return undefined;
  const location = await locationOf(tx.unguarded, environmentId, id);
  return location === undefined ? undefined : readRecord<Comment>(tx.unguarded, location.partition, location.key);
}

/**
 * Reads what has notified of a comment, and returns a function that creates the notifications of the comment or an edit
 * in the transaction, with their events. Users who were notified of the comment before are left out.
 *
 * @param comment as it is now
 * @param actorId the author of the comment or edit
 * @param again users who are notified even though another event has notified them of the comment
 */
export async function readyNotifications(
  tx: Transaction,
  environment: Environment,
  event: EventEnvelope,
  comment: Comment,
  actorId: string,
  recipients: readonly Recipient[],
  again: ReadonlySet<string> = new Set(),
): Promise<() => void> {
  const { id, threadId } = comment;
  const parts = Array.from({ length: Math.ceil(recipients.length / USERS_PER_RECORD) }, (_, part) =>
    notifiedKey(id, event.seq, part),
  );
  // Read in the transaction, so that another process with the same event conflicts.
  const own = new Map<string, NotifiedUsers | undefined>();
  const records = await Promise.all(parts.map((key) => readNotifiedUsers(tx, environment.id, threadId, key)));
  for (const [n, key] of parts.entries()) own.set(key, records[n]);
  // Only edits can have notified of it besides this event, and a range costs more than all the rest.
  const others =
    comment.editedAt === null
      ? []
      : (await readNotified(tx, environment.id, threadId, id)).flatMap((entry) =>
          entry.users.filter((userId) => !isWithdrawn(entry, userId, event.seq)),
        );
  const before = new Set(
    others.filter((userId) => !again.has(userId)).concat([...own.values()].flatMap((record) => record?.users ?? [])),
  );
  const fresh = recipients.filter(({ userId }) => !before.has(userId));
  return () => writeNotifications(tx, environment, event, comment, actorId, fresh, own);
}

/** @param own what is stored of the users that this event has notified of the comment, by key */
function writeNotifications(
  tx: Transaction,
  environment: Environment,
  event: EventEnvelope,
  { id, threadId }: Comment,
  actorId: string,
  fresh: readonly Recipient[],
  own: ReadonlyMap<string, NotifiedUsers | undefined>,
): void {
  for (let n = 0; n * USERS_PER_RECORD < fresh.length; n++) {
    const part = fresh.slice(n * USERS_PER_RECORD, (n + 1) * USERS_PER_RECORD);
    const key = notifiedKey(id, event.seq, n);
    const { users = [], mentioned = users, withdrawn = [] } = own.get(key) ?? {};
    putNotified(tx, environment.id, threadId, key, {
      at: event.at,
      users: [...users, ...part.map(({ userId }) => userId)],
      mentioned: [...mentioned, ...part.filter(({ kind }) => kind === 'mention').map(({ userId }) => userId)],
      ...(withdrawn.length === 0 ? {} : { withdrawn }),
    });
    for (const recipient of part) createNotification(tx, environment, event, id, actorId, recipient);
  }
}

function createNotification(
  tx: Transaction,
  environment: Environment,
  event: EventEnvelope,
  commentId: string,
  actorId: string,
  recipient: Recipient,
): void {
  const { inApp } = recipient;
  const notification = notificationOf(event, commentId, actorId, recipient);
  addNotification(tx, environment.id, {
    key: notificationKey(notification.userId, commentId, event.at),
    inApp,
    notification,
  });
  emitNotification(tx, environment, notification, inApp, event);
}

/** The notification of a user about the comment or edit of an event. */
function notificationOf(
  { at, roomId = '', threadId = '' }: EventEnvelope,
  commentId: string,
  actorId: string,
  { userId, kind }: Pick<Recipient, 'userId' | 'kind'>,
): Notification {
  return {
    id: notificationId(notificationKey(userId, commentId, at)),
    userId,
    kind,
    roomId,
    threadId,
    commentId,
    actorId,
    readAt: null,
    createdAt: at,
    updatedAt: at,
  };
}

/**
 * Whether the inbox shows a notification that is about to be created: the settings of the user and the filters of
 * plugins must allow it.
 */
export async function isShown(
  { inboxFilter }: Context,
  environment: Environment,
  event: EventEnvelope,
  commentId: string,
  actorId: string,
  { userId, kind, inApp }: Recipient,
): Promise<boolean> {
  if (!inApp || inboxFilter === undefined) return inApp;
  return inboxFilter(
    { id: environment.id, slug: environment.slug },
    notificationOf(event, commentId, actorId, { userId, kind }),
  );
}

/** Emits `notification.created`. `cause` is the event of the comment or edit. */
export function emitNotification(
  tx: Transaction,
  environment: Environment,
  notification: Notification,
  inApp: boolean,
  cause: EventEnvelope,
): void {
  const { userId, roomId, threadId, actorId } = notification;
  const data: NotificationCreated = { ...notification, inApp };
  emitChange(tx, environment, {
    type: 'notification.created',
    at: Date.parse(cause.at),
    roomId,
    threadId,
    receiverId: userId,
    userId: actorId,
    via: cause.actor.via,
    data: JSON.stringify(data),
  });
}
