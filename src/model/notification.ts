import * as Type from 'typebox';
import type { Static } from 'typebox';

/**
 * Why a user was notified: a comment mentions them, or answers in a thread that they follow. `mention` takes
 * precedence.
 */
export const notificationKinds = ['mention', 'reply'] as const;
export type NotificationKind = (typeof notificationKinds)[number];

/**
 * The notification of one user about one comment, stored and sent in this form. There is at most one per user and
 * comment.
 */
export interface Notification {
  /** Follows from the user, the comment and `createdAt`. */
  readonly id: string;
  readonly userId: string;
  readonly kind: NotificationKind;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  /** The user who wrote or edited the comment. */
  readonly actorId: string;
  readonly readAt: string | null;
  /** Time of the comment, or of the edit that mentioned the user. */
  readonly createdAt: string;
  /** Later than `createdAt` if a later edit mentioned the user again before the notification was read. */
  readonly updatedAt: string;
}

/** The `data` of the event `notification.created`. */
export interface NotificationCreated extends Notification {
  /**
   * False if the user's settings, or a filter of a plugin, keep it out of the inbox: then only backends and channels
   * receive the event.
   */
  readonly inApp: boolean;
}

/** The `data` of the event `notification.read`. */
export interface NotificationsRead {
  readonly userId: string;
  /** At most `READ_IDS` of them. */
  readonly ids: readonly string[];
  readonly readAt: string;
}

/** The most ids in one request to mark notifications as read, and in one event `notification.read`. */
export const READ_IDS = 200;

/** How long a notification is kept, in milliseconds. */
export const NOTIFICATION_TTL_MS = 90 * 86_400_000;

const kindsOf = (description: string) =>
  Type.Optional(
    Type.Object({ mention: Type.Optional(Type.Boolean()), reply: Type.Optional(Type.Boolean()) }, { description }),
  );

/** The form of the name of a channel: `inApp`, `email`, `webhook`, or the name of a plugin. */
export const CHANNEL_NAME = /^[a-z][A-Za-z0-9-]{0,39}$/;
/** The most channels in the settings of one user. */
export const MAX_CHANNELS = 50;

/** The body of a request that changes notification settings. Other channels have the same form. */
export const NotificationSettingsPutSchema = Type.Object({
  inApp: kindsOf('The inbox.'),
  email: kindsOf('Email.'),
  webhook: kindsOf('Webhooks.'),
});

/** Whether each channel delivers each kind of notification to a user. */
export type NotificationSettings = Readonly<Record<string, Readonly<Record<NotificationKind, boolean>>>>;

/** The body of a request that marks notifications as read: `ids`, or `all`. */
export const NotificationsReadSchema = Type.Object({
  ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: READ_IDS,
      description: `At most ${READ_IDS}. Unknown ids are ignored.`,
    }),
  ),
  all: Type.Optional(Type.Literal(true, { description: 'All that are unread.' })),
});
export type NotificationsReadInput = Static<typeof NotificationsReadSchema>;

/**
 * What a user chose for a thread: `subscribed` notifies them of every comment, `unsubscribed` of mentions only, `muted`
 * of nothing. Without a choice (`default`) those who have commented in the thread are notified of every comment.
 */
export type SubscriptionState = 'default' | 'subscribed' | 'unsubscribed' | 'muted';

/** The body of a request that changes a user's choice for a thread. */
export const SubscriptionSchema = Type.Object({
  userId: Type.Optional(
    Type.String({
      description: 'The user; required with a secret key. With a user token it is the user of the token.',
    }),
  ),
  action: Type.Union([Type.Literal('subscribe'), Type.Literal('unsubscribe'), Type.Literal('mute')], {
    description:
      '`subscribe`: notify of every comment, also without having commented. `unsubscribe`: of mentions only. `mute`: of nothing.',
  }),
});
export type SubscriptionAction = Static<typeof SubscriptionSchema>['action'];
