import type { NotificationKind, SubscriptionState } from '../../model/notification.ts';
import type { User } from '../../model/user.ts';
import { inScope } from '../../model/room.ts';
import type { Reader } from '../../ports/store.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import type { ThreadSubscription, Participation } from './followers.ts';
import { IN_APP, readSettings } from './settings.ts';

/** The state of a possible recipient. */
export interface RecipientUser {
  /** Null for an id that no user has: it may be mentioned, and the user finds the notification on their first visit. */
  readonly user: User | null;
  /** Whether the inbox shows each kind. */
  readonly inApp: Readonly<Record<NotificationKind, boolean>>;
}

/** The state of a user that decides whether they are notified of a comment. */
export interface RecipientFacts {
  readonly user: User | null;
  readonly roomId: string;
  /** Whether the user wrote the comment, or made the edit. */
  readonly isActor: boolean;
  readonly isMentioned: boolean;
  /**
   * The user's first comment in the thread, if that is earlier than the comment; undefined for an edit, which notifies
   * only those it mentions.
   */
  readonly participation: Participation | undefined;
  /** The user's choice for the thread. */
  readonly choice: ThreadSubscription | undefined;
  /** ISO time of the comment or edit. */
  readonly at: string;
}

/** Why a user is not notified. */
export type SuppressionReason = 'actor' | 'not_following' | 'unsubscribed' | 'muted' | 'unknown_user' | 'room';

/** The kind of notification, or why there is none. */
export type NotificationDecision = { readonly kind: NotificationKind } | { readonly suppressed: SuppressionReason };

/**
 * Whether a user is notified of a comment. The preferences do not matter here: they decide which channels deliver it.
 */
export function decideNotification({
  user,
  roomId,
  isActor,
  isMentioned,
  participation,
  choice,
  at,
}: RecipientFacts): NotificationDecision {
  if (isActor) return { suppressed: 'actor' };
  const state = stateOf(user, choice);
  const kind = isMentioned ? 'mention' : 'reply';
  const silence = silenceOf(state, kind);
  if (silence === 'muted') return { suppressed: silence };
  if (!isMentioned) {
    const subscribed = choice !== undefined && state === 'subscribed' && choice.at <= at;
    if (!subscribed && !isParticipant(user, participation))
      return { suppressed: user === null && participation !== undefined ? 'unknown_user' : 'not_following' };
    if (silence !== null) return { suppressed: silence };
  }
  if (!maySeeRoom(user, roomId)) return { suppressed: 'room' };
  return { kind };
}

/**
 * Whether a channel may still deliver a notification: its recipient may see the room, and since then has neither muted
 * the thread nor, if it is for a reply, unsubscribed.
 */
export function isDeliverable({
  user,
  roomId,
  kind,
  choice,
}: Pick<RecipientFacts, 'user' | 'roomId' | 'choice'> & { readonly kind: NotificationKind }): boolean {
  return maySeeRoom(user, roomId) && silenceOf(stateOf(user, choice), kind) === null;
}

/** The choice for a thread by which its user gets no notification of this kind; null if it lets them. */
function silenceOf(state: SubscriptionState, kind: NotificationKind): 'muted' | 'unsubscribed' | null {
  if (state === 'muted') return state;
  return state === 'unsubscribed' && kind === 'reply' ? state : null;
}

/**
 * A user's choice for a thread. A choice from before the user was erased does not count, even if the user was created
 * again.
 */
export function stateOf(user: User | null, choice: ThreadSubscription | undefined): SubscriptionState {
  return choice === undefined || user === null || user.createdAt > choice.at ? 'default' : choice.state;
}

/** Whether a user is a participant. An erased user is not, nor one who came back and has not commented since. */
export function isParticipant(user: User | null, participation: Participation | undefined): boolean {
  return user !== null && participation !== undefined && user.createdAt <= participation.at;
}

/**
 * Whether a user may see a room, as far as the server knows: by the rooms of their latest token; every room without
 * one.
 */
export function maySeeRoom(user: User | null, roomId: string): boolean {
  return inScope(user?.tokenScope?.rooms ?? null, roomId);
}

/** Reads what the server knows of a user. */
export async function readRecipient(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  userId: string,
): Promise<RecipientUser> {
  const [user, settings] = await Promise.all([
    readRecord<User>(reader, usersOf(environmentId), escapeId(userId)),
    readSettings(reader, environmentId, userId),
  ]);
  return {
    user: user ?? null,
    inApp: settings[IN_APP] ?? { mention: true, reply: true },
  };
}
