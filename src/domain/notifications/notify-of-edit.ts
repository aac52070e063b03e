import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { emitNotification, isShown, readCurrent, readyNotifications, type Recipient } from './create-notifications.ts';
import { readFollowers } from './followers.ts';
import {
  addNotification,
  notificationKey,
  readNotification,
  removeNotification,
  replaceNotification,
  type StoredNotification,
} from './notification-records.ts';
import { isWithdrawn, putNotified, readNotified } from './notified-users.ts';
import { decideNotification, readRecipient } from './recipients.ts';

/**
 * Notifies the users whom an edited comment mentions, except its editor. A user who has an unread notification of the
 * comment gets no second one: it becomes a mention of the time of the edit. A user who has read a mention in it gets
 * none either, but one who has only read a reply does.
 */
export async function notifyOfEdit(
  ctx: Context,
  environment: Environment,
  event: EventEnvelope,
  comment: Comment,
): Promise<void> {
  // A backend edits for the author.
  const editorId = event.actor.userId ?? comment.userId;
  const recipients = await mentionedBy(ctx, environment, event, comment, editorId);
  if (recipients.length === 0) return;
  await ctx.store.transact(async (tx) => {
    const current = await readCurrent(tx, environment.id, comment);
    if (current === undefined) return;
    const readReplies = new Set<string>();
    const others = new Set<string>();
    for (const entry of await readNotified(tx, environment.id, comment.threadId, comment.id)) {
      const { key, at, users, mentioned } = entry;
      const renewed: string[] = [];
      for (const recipient of recipients) {
        const { userId } = recipient;
        if (!users.includes(userId) || isWithdrawn(entry, userId, event.seq)) continue;
        const stored = await readNotification(tx, environment.id, userId, notificationKey(userId, comment.id, at));
        if (isReadReply(stored, event)) readReplies.add(userId);
        else others.add(userId);
        if (stored !== undefined && renew(tx, environment, event, stored, recipient)) renewed.push(userId);
      }
      if (mentioned === undefined || renewed.every((userId) => mentioned.includes(userId))) continue;
      putNotified(tx, environment.id, comment.threadId, key, {
        at,
        users,
        withdrawn: entry.withdrawn ?? [],
        mentioned: [...new Set([...mentioned, ...renewed])],
      });
    }
    for (const userId of others) readReplies.delete(userId);
    (await readyNotifications(tx, environment, event, current, editorId, recipients, readReplies))();
  });
}

async function mentionedBy(
  ctx: Context,
  environment: Environment,
  event: EventEnvelope,
  { id, threadId, mentions }: Comment,
  editorId: string,
): Promise<Recipient[]> {
  const { choices } = await readFollowers(ctx, environment.id, threadId);
  const recipients: Recipient[] = [];
  for (const userId of mentions) {
    const { user, inApp } = await readRecipient(ctx.store, environment.id, userId);
    const facts = {
      user,
      roomId: event.roomId ?? '',
      isActor: userId === editorId,
      isMentioned: true,
      participation: undefined,
      choice: choices.get(userId),
      at: event.at,
    };
    if (!('kind' in decideNotification(facts))) continue;
    const recipient = { userId, kind: 'mention', inApp: inApp.mention } as const;
    recipients.push({ ...recipient, inApp: await isShown(ctx, environment, event, id, editorId, recipient) });
  }
  return recipients;
}

/**
 * Whether a notification is a reply that was read. One that a later edit made a reply is not, if this one is handled
 * again.
 */
function isReadReply(stored: StoredNotification | undefined, { at }: EventEnvelope): boolean {
  return (
    stored?.notification.kind === 'reply' && stored.notification.readAt !== null && stored.notification.updatedAt < at
  );
}

/** Makes an unread notification of a comment a mention of the time of the edit. Returns whether it did. */
function renew(
  tx: Transaction,
  environment: Environment,
  event: EventEnvelope,
  stored: StoredNotification,
  { inApp }: Recipient,
): boolean {
  if (stored.notification.readAt !== null || stored.notification.updatedAt >= event.at) return false;
  const renewed = { ...stored.notification, kind: 'mention', updatedAt: event.at } as const;
  if (inApp && !stored.inApp) {
    removeNotification(tx, environment.id, stored);
    addNotification(tx, environment.id, { ...stored, inApp, notification: renewed });
  } else {
    replaceNotification(tx, environment.id, stored, renewed);
  }
  // Channels that did not deliver the answer may deliver the mention.
  if (stored.notification.kind === 'reply') emitNotification(tx, environment, renewed, inApp || stored.inApp, event);
  return true;
}
