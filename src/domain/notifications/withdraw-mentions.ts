import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { type Followers, findParticipants, readFollowers } from './followers.ts';
import { addNotification, notificationKey, readNotification, removeNotification } from './notification-records.ts';
import { type NotifiedEntry, putNotified, readNotified, seqOfKey } from './notified-users.ts';
import { decideNotification, readRecipient } from './recipients.ts';

/**
 * Withdraws the unread notifications of users whom an edited comment no longer mentions. Those who would have been
 * notified of the comment without the mention keep theirs, as a reply. Repeating the event changes nothing.
 */
export async function withdrawMentions(
  ctx: Context,
  environment: Environment,
  event: EventEnvelope,
  comment: Comment,
): Promise<void> {
  const { id, threadId } = comment;
  const mentioned = new Set(comment.mentions);
  const isDue = (entry: NotifiedEntry): boolean =>
    seqOfKey(entry.key) < event.seq && lostMentions(entry, mentioned).length > 0;
  if (!(await readNotified(ctx.store, environment.id, threadId, id)).some(isDue)) return;
  const followers = await followersOf(ctx, environment, comment);
  await ctx.store.transact(async (tx) => {
    const entries = await readNotified(tx, environment.id, threadId, id);
    for (const entry of entries.filter(isDue)) {
      const { key, at, users } = entry;
      const left = new Set(entry.mentioned ?? users);
      const withdrawn = [...(entry.withdrawn ?? [])];
      for (const userId of lostMentions(entry, mentioned)) {
        const outcome = await withdraw(tx, { environment, event, comment, entry, userId, followers });
        if (outcome !== 'mentioned later') left.delete(userId);
        if (outcome === 'removed') withdrawn.push({ userId, seq: event.seq });
      }
      putNotified(tx, environment.id, threadId, key, { at, users, mentioned: [...left], withdrawn });
    }
  });
}

/** The users of a record whom the comment no longer mentions. */
function lostMentions({ users, mentioned = users }: NotifiedEntry, mentions: ReadonlySet<string>): readonly string[] {
  return mentioned.filter((userId) => !mentions.has(userId));
}

async function followersOf(ctx: Context, { id }: Environment, { threadId, createdAt }: Comment): Promise<Followers> {
  const followers = await readFollowers(ctx, id, threadId);
  return followers.isComplete
    ? followers
    : { ...followers, participants: await findParticipants(ctx, id, threadId, createdAt) };
}

interface Lost {
  readonly environment: Environment;
  /** That of the edit. */
  readonly event: EventEnvelope;
  readonly comment: Comment;
  readonly entry: NotifiedEntry;
  readonly userId: string;
  readonly followers: Followers;
}

/**
 * Removes a notification of a mention or makes it a reply, if it is unread and no later edit has mentioned the user
 * again.
 */
async function withdraw(tx: Transaction, lost: Lost): Promise<'removed' | 'kept' | 'mentioned later'> {
  const { environment, event, comment, entry, userId } = lost;
  const stored = await readNotification(tx, environment.id, userId, notificationKey(userId, comment.id, entry.at));
  if (stored?.notification.kind !== 'mention' || stored.notification.readAt !== null) return 'kept';
  if (stored.notification.updatedAt > event.at) return 'mentioned later';
  const inApp = await showsReply(tx, lost);
  removeNotification(tx, environment.id, stored);
  if (inApp === null) return 'removed';
  const notification = { ...stored.notification, kind: 'reply', updatedAt: event.at } as const;
  addNotification(tx, environment.id, { key: stored.key, inApp: inApp && stored.inApp, notification });
  return 'kept';
}

/** Whether the inbox of a user shows a reply about the comment; null if they are not to be notified of one. */
async function showsReply(
  tx: Transaction,
  { environment, event, comment, entry, userId, followers }: Lost,
): Promise<boolean | null> {
  // Edits notify only those whom they mention.
  if (entry.at !== comment.createdAt) return null;
  const { user, inApp } = await readRecipient(tx, environment.id, userId);
  const first = followers.participants.get(userId);
  const participation = first !== undefined && first.at < comment.createdAt ? first : undefined;
  const facts = { user, roomId: event.roomId ?? '', isActor: false, isMentioned: false, participation };
  return 'kind' in decideNotification({ ...facts, choice: followers.choices.get(userId), at: entry.at })
    ? inApp.reply
    : null;
}
