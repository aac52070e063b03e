import { hash } from 'node:crypto';
import { TIME_LENGTH, timeKey } from '../../lib/ids.ts';
import type { Notification } from '../../model/notification.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { inboxOf } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';

/** Prefix of the notifications that the inbox shows. */
export const SHOWN_PREFIX = 'n/';
/** Prefix of those that it does not show, because of the user's settings. */
export const HIDDEN_PREFIX = 'h/';
/** Prefix of the index of those that it shows and that are unread. */
export const UNREAD_PREFIX = 'u/';
/** The number of entries of that index. */
const COUNT_KEY = 'unread';

const ID_PREFIX = 'nt_';
const HASH_LENGTH = 16;
const ID = /^nt_([0-9a-z]{9})([0-9a-f]{16})$/;

/** `<time>~<hash>`: the key of a notification after its prefix. */
export type NotificationKey = string;

/** The key of the notification of a user about a comment. `createdAt` is its ISO time. */
export function notificationKey(userId: string, commentId: string, createdAt: string): NotificationKey {
  return `${timeKey(Date.parse(createdAt))}~${hash('sha256', `${commentId} ${userId}`, 'hex').slice(0, HASH_LENGTH)}`;
}

/** The id of the notification with this key. */
export function notificationId(key: NotificationKey): string {
  return `${ID_PREFIX}${key.slice(0, TIME_LENGTH)}${key.slice(TIME_LENGTH + 1)}`;
}

/** The inverse of `notificationId`; undefined for text that is no id of a notification. */
export function keyOfNotification(id: string): NotificationKey | undefined {
  const [, time, rest] = ID.exec(id) ?? [];
  return time === undefined || rest === undefined ? undefined : `${time}~${rest}`;
}

/** A notification as stored. */
export interface StoredNotification {
  readonly key: NotificationKey;
  /** Whether the inbox shows it. */
  readonly inApp: boolean;
  readonly notification: Notification;
}

/** The notification of a user with this key; undefined if there is none. */
export async function readNotification(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  userId: string,
  key: NotificationKey,
): Promise<StoredNotification | undefined> {
  const inbox = inboxOf(environmentId, userId);
  for (const prefix of [SHOWN_PREFIX, HIDDEN_PREFIX]) {
    const notification = await readRecord<Notification>(reader, inbox, prefix + key);
    if (notification !== undefined) return { key, inApp: prefix === SHOWN_PREFIX, notification };
  }
  return undefined;
}

/**
 * The notification of a user with this id, as it is now, also one that the inbox does not show; undefined if there is
 * none.
 */
export async function findNotification(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  userId: string,
  id: string,
): Promise<Notification | undefined> {
  const key = keyOfNotification(id);
  return key === undefined ? undefined : (await readNotification(reader, environmentId, userId, key))?.notification;
}

/** Adds a notification to an inbox, which must not contain it. */
export function addNotification(
  tx: Transaction,
  environmentId: string,
  { key, inApp, notification }: StoredNotification,
): void {
  const inbox = inboxOf(environmentId, notification.userId);
  putRecord(tx, inbox, (inApp ? SHOWN_PREFIX : HIDDEN_PREFIX) + key, notification);
  if (!inApp || notification.readAt !== null) return;
  putRecord(tx, inbox, UNREAD_PREFIX + key, notification.roomId);
  countUnread(tx, inbox, 1);
}

/** Replaces a notification, which the transaction has read, by one with other times or another kind. */
export function replaceNotification(
  tx: Transaction,
  environmentId: string,
  { key, inApp, notification: before }: StoredNotification,
  after: Notification,
): void {
  const inbox = inboxOf(environmentId, before.userId);
  putRecord(tx, inbox, (inApp ? SHOWN_PREFIX : HIDDEN_PREFIX) + key, after);
  if (inApp && before.readAt === null && after.readAt !== null) dropUnread(tx, inbox, key);
}

/** Removes a notification, which the transaction has read. */
export function removeNotification(
  tx: Transaction,
  environmentId: string,
  { key, inApp, notification }: StoredNotification,
): void {
  const inbox = inboxOf(environmentId, notification.userId);
  tx.delete(inbox, (inApp ? SHOWN_PREFIX : HIDDEN_PREFIX) + key);
  if (inApp && notification.readAt === null) dropUnread(tx, inbox, key);
}

/** The number of unread notifications that the inbox of a user shows. */
export async function unreadCount(reader: Pick<Reader, 'get'>, environmentId: string, userId: string): Promise<number> {
  return Number((await reader.get(inboxOf(environmentId, userId), COUNT_KEY)) ?? 0);
}

/** Corrects the number of unread notifications of a user. */
export function setUnreadCount(tx: Transaction, environmentId: string, userId: string, count: number): void {
  tx.update(inboxOf(environmentId, userId), COUNT_KEY, () => (count === 0 ? undefined : String(count)));
}

function dropUnread(tx: Transaction, inbox: string, key: NotificationKey): void {
  tx.delete(inbox, UNREAD_PREFIX + key);
  countUnread(tx, inbox, -1);
}

function countUnread(tx: Transaction, inbox: string, change: 1 | -1): void {
  tx.update(inbox, COUNT_KEY, (current) => {
    const count = Number(current ?? 0) + change;
    return count === 0 ? undefined : String(count);
  });
}
