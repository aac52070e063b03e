import { timeKey } from '../../lib/ids.ts';
import { NOTIFICATION_TTL_MS } from '../../model/notification.ts';
import type { Context } from '../context.ts';
import { followersOf, inboxOf, notifiedOf } from '../records/partitions.ts';
import { readRecords } from '../records/record.ts';
import {
  HIDDEN_PREFIX,
  notificationKey,
  readNotification,
  removeNotification,
  SHOWN_PREFIX,
} from './notification-records.ts';
import { commentOfKey, type NotifiedEntry, type NotifiedUsers, readNotified } from './notified-users.ts';

/** Notifications or records removed in one transaction, approximately. */
const SLICE = 500;

/** Removes the notifications of a deleted comment. */
export async function removeCommentNotifications(
  ctx: Context,
  environmentId: string,
  threadId: string,
  commentId: string,
): Promise<void> {
  for (const entry of await readNotified(ctx.store, environmentId, threadId, commentId))
    await removeEntry(ctx, environmentId, threadId, entry);
}

/** Removes the notifications of a deleted thread, and the records of its followers. */
export async function removeThreadNotifications(ctx: Context, environmentId: string, threadId: string): Promise<void> {
  const partition = notifiedOf(environmentId, threadId);
  const oldest = () => readRecords<NotifiedUsers>(ctx.store, partition, { limit: SLICE });
  for (let page = await oldest(); page.length > 0; page = await oldest())
    for (const { key, value } of page) await removeEntry(ctx, environmentId, threadId, { key, ...value });
  const followers = followersOf(environmentId, threadId);
  for (
    let page = await ctx.store.range(followers, { limit: SLICE });
    page.length > 0;
    page = await ctx.store.range(followers, { limit: SLICE })
  ) {
    const keys = page.map(({ key }) => key);
    await ctx.store.transact((tx) => Promise.resolve(keys.forEach((key) => tx.delete(followers, key))));
  }
}

/** Removes the notifications of a user up to a time (ISO), such as that of their erasure. */
export async function removeUserNotifications(
  ctx: Context,
  environmentId: string,
  userId: string,
  until: string,
): Promise<void> {
  // `~` is higher than every character of a key, so that those of this very millisecond are included.
  const bound = `${timeKey(Date.parse(until))}~~`;
  for (const prefix of [SHOWN_PREFIX, HIDDEN_PREFIX]) {
    while ((await removeOldest(ctx, environmentId, userId, prefix, bound)) === SLICE);
  }
}

/** Removes the notifications of a user that are older than `NOTIFICATION_TTL_MS`, and returns their number. */
export async function sweepInbox(ctx: Context, environmentId: string, userId: string): Promise<number> {
  const cutoff = ctx.clock.now() - NOTIFICATION_TTL_MS;
  let removed = 0;
  for (const prefix of [SHOWN_PREFIX, HIDDEN_PREFIX]) {
    for (;;) {
      const count = await removeOldest(
        ctx,
        environmentId,
        userId,
        prefix,
        timeKey(Math.max(0, cutoff)),
        new Date(cutoff).toISOString(),
      );
      removed += count;
      if (count < SLICE) break;
    }
  }
  return removed;
}

/**
 * Removes at most `SLICE` of the oldest notifications of a user whose keys are below `bound`, and returns their number.
 *
 * @param expiry ISO time; if given, the records of notified users that are older are removed too, since all of their
 *   notifications are to be removed
 */
async function removeOldest(
  ctx: Context,
  environmentId: string,
  userId: string,
  prefix: string,
  bound: string,
  expiry?: string,
): Promise<number> {
  const inbox = inboxOf(environmentId, userId);
  const isDue = ({ key }: { key: string }): boolean => key.slice(prefix.length) < bound;
  // Read one entry first; usually nothing is due.
  if (!(await ctx.store.range(inbox, { prefix, limit: 1 })).some(isDue)) return 0;
  const keys = (await ctx.store.range(inbox, { prefix, limit: SLICE }))
    .filter(isDue)
    .map(({ key }) => key.slice(prefix.length));
  await ctx.store.transact(async (tx) => {
    for (const key of keys) {
      const stored = await readNotification(tx, environmentId, userId, key);
      if (stored === undefined) continue;
      removeNotification(tx, environmentId, stored);
      if (expiry === undefined) continue;
      const { threadId, commentId } = stored.notification;
      for (const { key: notified, at } of await readNotified(tx, environmentId, threadId, commentId))
        if (at < expiry) tx.delete(notifiedOf(environmentId, threadId), notified);
    }
  });
  return keys.length;
}

async function removeEntry(
  ctx: Context,
  environmentId: string,
  threadId: string,
  { key, at, users }: NotifiedEntry,
): Promise<void> {
  const commentId = commentOfKey(key);
  await ctx.store.transact(async (tx) => {
    for (const userId of users) {
      const stored = await readNotification(tx, environmentId, userId, notificationKey(userId, commentId, at));
      if (stored !== undefined) removeNotification(tx, environmentId, stored);
    }
    tx.delete(notifiedOf(environmentId, threadId), key);
  });
}
