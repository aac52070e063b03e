import type { Context } from '../context.ts';
import { inboxOf, unescapeId } from '../records/partitions.ts';
import { scanEntries, scanPartitions } from '../records/scan.ts';
import { setUnreadCount, UNREAD_PREFIX, unreadCount } from './notification-records.ts';

/** An inbox whose number of unread notifications is wrong. */
export interface InboxDifference {
  readonly userId: string;
  readonly counted: number;
  readonly stored: number;
}

/**
 * Compares the number of unread notifications that each inbox of an environment keeps with those that it has. Reads the
 * index of all of them. A number that changes meanwhile is not compared.
 */
export async function findInboxDifferences(ctx: Context, environmentId: string): Promise<InboxDifference[]> {
  const differences: InboxDifference[] = [];
  const prefix = inboxOf(environmentId, '');
  for await (const partition of scanPartitions(ctx.store, prefix)) {
    const userId = unescapeId(partition.slice(prefix.length));
    const counted = await unreadCount(ctx.store, environmentId, userId);
    let stored = 0;
    for await (const _ of scanEntries(ctx.store, partition, UNREAD_PREFIX)) stored++;
    if (counted !== stored && counted === (await unreadCount(ctx.store, environmentId, userId)))
      differences.push({ userId, counted, stored });
  }
  return differences;
}

/** Corrects the numbers of unread notifications of an environment, and returns how many were wrong. */
export async function recountInboxes(ctx: Context, environmentId: string): Promise<number> {
  const differences = await findInboxDifferences(ctx, environmentId);
  for (const { userId } of differences) {
    await ctx.store.transact(async (tx) => {
      // Every change of the unread notifications writes this number, and makes the transaction run again.
      await unreadCount(tx, environmentId, userId);
      const unread = await tx.range(inboxOf(environmentId, userId), { prefix: UNREAD_PREFIX });
      setUnreadCount(tx, environmentId, userId, unread.length);
    });
  }
  return differences.length;
}
