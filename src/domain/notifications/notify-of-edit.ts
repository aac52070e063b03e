import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { createNotifications, emitNotification, isShown, readCurrent, type Recipient } from './create-notifications.ts';
import { readFollowers } from './followers.ts';
import { addNotification, notificationKey, readNotification, removeNotification, replaceNotification } from './notification-records.ts';
import { readNotified } from './notified-users.ts';
import { decide, readRecipient } from './recipients.ts';

/**
 * Notifies the users whom an edited comment mentions, except its editor. Whoever was notified of the comment before gets no
 * second notification: one that is still unread becomes a mention of the time of the edit.
 */
export async function notifyOfEdit(ctx: Context, environment: Environment, event: EventEnvelope, comment: Comment): Promise<void> {
  // A backend edits for the author.
  const editorId = event.actor.userId ?? comment.userId;
  const recipients = await mentionedBy(ctx, environment, event, comment, editorId);
  if (recipients.length === 0) return;
  await ctx.store.transact(async (tx) => {
    const current = await readCurrent(ctx, tx, environment.id, comment);
    if (current === undefined) return;
    for (const { at, users } of await readNotified(tx, environment.id, comment.threadId, comment.id)) {
      for (const recipient of recipients) if (users.includes(recipient.userId)) await renew(tx, environment, event, comment.id, at, recipient);
    }
    await createNotifications(tx, environment, event, current, editorId, recipients);
  });
}

async function mentionedBy(ctx: Context, environment: Environment, event: EventEnvelope, { id, threadId, mentions }: Comment, editorId: string): Promise<Recipient[]> {
  const { choices } = await readFollowers(ctx, environment.id, threadId);
  const recipients: Recipient[] = [];
  for (const userId of mentions) {
    const { user, inApp } = await readRecipient(ctx.store, environment.id, userId);
    const facts = { user, roomId: event.roomId ?? '', isActor: userId === editorId, isMentioned: true, participation: undefined, choice: choices.get(userId), at: event.at };
    if (!('kind' in decide(facts))) continue;
    const recipient = { userId, kind: 'mention', inApp: inApp.mention } as const;
    recipients.push({ ...recipient, inApp: await isShown(ctx, environment, event, id, editorId, recipient) });
  }
  return recipients;
}

/** Makes an unread notification of a comment a mention of the time of the edit. */
async function renew(tx: Transaction, environment: Environment, event: EventEnvelope, commentId: string, createdAt: string, { userId, inApp }: Recipient): Promise<void> {
  const stored = await readNotification(tx, environment.id, userId, notificationKey(userId, commentId, createdAt));
  if (stored === undefined || stored.notification.readAt !== null || stored.notification.updatedAt >= event.at) return;
  const renewed = { ...stored.notification, kind: 'mention', updatedAt: event.at } as const;
  if (inApp && !stored.inApp) {
    removeNotification(tx, environment.id, stored);
    addNotification(tx, environment.id, { ...stored, inApp, notification: renewed });
  } else {
    replaceNotification(tx, environment.id, stored, renewed);
  }
  // Channels that did not deliver the answer may deliver the mention.
  if (stored.notification.kind === 'reply') emitNotification(tx, environment, renewed, inApp || stored.inApp, event);
}
