import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope, EventType } from '../../model/event.ts';
import type { UserView } from '../users/users.ts';
import type { Context } from '../context.ts';
import { NotificationBatch } from './notification-batch.ts';
import { notifyOfEdit } from './notify-of-edit.ts';
import { removeCommentNotifications, removeThreadNotifications, removeUserNotifications } from './removal.ts';
import { withdrawMentions } from './withdraw-mentions.ts';

/** The types of events that notify users, or remove notifications. */
export const notifyingTypes: ReadonlySet<EventType> = new Set([
  'thread.created',
  'comment.created',
  'comment.updated',
  'comment.deleted',
  'thread.deleted',
  'user.updated',
]);

/**
 * Notifies users of consecutive events of an environment, in order (docs/notifications.md), and removes the
 * notifications of what was deleted or edited away. Repeating events notifies nobody again. Rejects if the store cannot
 * be written; then some of the events may have been handled.
 */
export async function notifyOf(
  ctx: Context,
  environment: Environment,
  events: readonly EventEnvelope[],
): Promise<void> {
  let batch = new NotificationBatch(ctx, environment);
  for (const event of events) {
    if (event.type === 'comment.created') await batch.add(event, event.data as Comment, false);
    else if (event.type === 'thread.created')
      await batch.add(event, (event.data as { comment: Comment }).comment, true);
    else if (isOtherWork(event)) {
      // The event may refer to notifications that are still in the batch.
      await batch.commit();
      await doOtherWork(ctx, environment, event);
      batch = new NotificationBatch(ctx, environment);
    }
    if (batch.isFull) await batch.commit();
  }
  await batch.commit();
}

function isOtherWork({ type, data }: EventEnvelope): boolean {
  if (type === 'user.updated') return (data as UserView).erased === true;
  return type === 'comment.updated' || type === 'comment.deleted' || type === 'thread.deleted';
}

async function doOtherWork(ctx: Context, environment: Environment, event: EventEnvelope): Promise<void> {
  const { type, data, threadId = '' } = event;
  if (type === 'comment.updated') {
    await withdrawMentions(ctx, environment, event, data as Comment);
    await notifyOfEdit(ctx, environment, event, data as Comment);
  } else if (type === 'comment.deleted')
    await removeCommentNotifications(ctx, environment.id, threadId, (data as { commentId: string }).commentId);
  else if (type === 'thread.deleted') await removeThreadNotifications(ctx, environment.id, threadId);
  else await removeUserNotifications(ctx, environment.id, (data as UserView).userId, event.at);
}
