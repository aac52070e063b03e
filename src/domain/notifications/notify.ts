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
  let creations: EventEnvelope[] = [];
  for (const event of events) {
    if (event.type === 'comment.created' || event.type === 'thread.created') creations.push(event);
    if (!isOtherWork(event)) continue;
    // The event may refer to notifications of those before.
    await notifyOfCreations(ctx, environment, creations);
    creations = [];
    await doOtherWork(ctx, environment, event);
  }
  await notifyOfCreations(ctx, environment, creations);
}

async function notifyOfCreations(
  ctx: Context,
  environment: Environment,
  events: readonly EventEnvelope[],
): Promise<void> {
  const batch = new NotificationBatch(ctx, environment);
  await batch.prepare(events.map(commentOf));
  for (const event of events) {
    await batch.add(event, commentOf(event), event.type === 'thread.created');
    if (batch.isFull) await batch.commit();
  }
  await batch.commit();
}

/** The comment that an event has created, or the first one of the thread. */
function commentOf({ type, data }: EventEnvelope): Comment {
  return type === 'thread.created' ? (data as { comment: Comment }).comment : (data as Comment);
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
