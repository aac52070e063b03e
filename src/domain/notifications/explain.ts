import type { Environment } from '../../model/environments/environment.ts';
import type { Notification, NotificationSettings, SubscriptionState } from '../../model/notification.ts';
import { requireComment } from '../comments/find-comment.ts';
import type { Context } from '../context.ts';
import { readConsumerCursor } from '../events/consumer-cursors.ts';
import { streamOf } from '../events/streams.ts';
import { findParticipants, readFollowers } from './followers.ts';
import { notificationKey, readNotification } from './notification-records.ts';
import { isWithdrawn, readNotified } from './notified-users.ts';
import {
  decideNotification,
  isParticipant,
  maySeeRoom,
  readRecipient,
  type SuppressionReason,
  stateOf,
} from './recipients.ts';
import { readSettings } from './settings.ts';

/** The name of the consumer that notifies users. */
export const NOTIFICATIONS_CONSUMER = 'notifications';

/**
 * Why a user was or was not notified of a comment. Everything but `notification` is as of now: it may have been
 * different then.
 */
export interface Explanation {
  readonly commentId: string;
  readonly userId: string;
  readonly threadId: string;
  readonly roomId: string;
  readonly isAuthor: boolean;
  readonly isMentioned: boolean;
  /** Whether the user had commented in the thread before. */
  readonly isParticipant: boolean;
  readonly subscription: SubscriptionState;
  /** Whether any user has this id. */
  readonly isKnown: boolean;
  /** Whether the user may see the room, by the rooms of their latest token; null is no restriction. */
  readonly maySeeRoom: boolean;
  readonly tokenRooms: readonly string[] | null;
  readonly settings: NotificationSettings;
  /** The outcome of the rules now: the kind of notification, or why there is none. */
  readonly rule: 'mention' | 'reply' | SuppressionReason;
  /** The notification, and whether the inbox shows it; null if there is none. */
  readonly notification: (Notification & { readonly inApp: boolean }) | null;
  /** Whether the user was notified, even if the notification has been removed since. */
  readonly wasNotified: boolean;
  /** Events that are still to be handled: the comment may be among them. */
  readonly pendingEvents: number;
}

/** Explains why a user was or was not notified of a comment. Throws `comment_not_found`. */
export async function explainNotification(
  ctx: Context,
  environment: Environment,
  commentId: string,
  userId: string,
): Promise<Explanation> {
  const { comment, thread } = await requireComment(ctx.store, environment.id, commentId);
  const { threadId, createdAt } = comment;
  const { roomId } = thread;
  const followers = await readFollowers(ctx, environment.id, threadId);
  const participants = followers.isComplete
    ? followers.participants
    : await findParticipants(ctx, environment.id, threadId, createdAt);
  const first = participants.get(userId);
  const participation = first !== undefined && first.at < createdAt ? first : undefined;
  const { user } = await readRecipient(ctx.store, environment.id, userId);
  const choice = followers.choices.get(userId);
  const isAuthor = comment.userId === userId;
  const isMentioned = comment.mentions.includes(userId);
  const decision = decideNotification({
    user,
    roomId,
    isActor: isAuthor,
    isMentioned,
    participation,
    choice,
    at: createdAt,
  });
  const notified = (await readNotified(ctx.store, environment.id, threadId, commentId)).filter(({ users }) =>
    users.includes(userId),
  );
  const current = notified.find((entry) => !isWithdrawn(entry, userId, Infinity));
  const stored =
    current === undefined
      ? undefined
      : await readNotification(ctx.store, environment.id, userId, notificationKey(userId, commentId, current.at));
  return {
    commentId,
    userId,
    threadId,
    roomId,
    isAuthor,
    isMentioned,
    isParticipant: isParticipant(user, participation),
    subscription: stateOf(user, choice),
    isKnown: user !== null,
    maySeeRoom: maySeeRoom(user, roomId),
    tokenRooms: user?.tokenScope?.rooms ?? null,
    settings: await readSettings(ctx.store, environment.id, userId),
    rule: 'kind' in decision ? decision.kind : decision.suppressed,
    notification: stored === undefined ? null : { ...stored.notification, inApp: stored.inApp },
    wasNotified: notified.length > 0,
    pendingEvents: await pendingEvents(ctx, environment),
  };
}

async function pendingEvents({ store }: Context, environment: Environment): Promise<number> {
  const last = await store.lastSeq(streamOf(environment));
  return last - ((await readConsumerCursor(store, environment, NOTIFICATIONS_CONSUMER)) ?? 0);
}
