import { timestamp } from '../../lib/clock.ts';
import type { Context } from '../context.ts';
import { moderationOf } from '../records/partitions.ts';
import { findItem, removeItem, statePrefix } from './queue.ts';

/** How long decided items are kept, in milliseconds. */
const DECIDED_MS = 30 * 24 * 3_600_000;
/** Items removed in one transaction. */
const SLICE = 100;

/** Removes the items of an environment that were decided more than 30 days ago, and returns their number. For the background worker. */
export async function sweepDecided(ctx: Context, environmentId: string): Promise<number> {
  const prefix = statePrefix('decided');
  const end = `${prefix}${timestamp(ctx.clock.now() - DECIDED_MS)}`;
  for (let removed = 0; ; ) {
    const slice = await ctx.store.range(moderationOf(environmentId), { prefix, limit: SLICE });
    const stale = slice.filter(({ key }) => key < end).map(({ key }) => key.slice(key.indexOf('~') + 1));
    await ctx.store.transact(async (tx) => {
      for (const itemId of stale) {
        const item = await findItem(tx, environmentId, itemId);
        if (item !== undefined) await removeItem(tx, environmentId, item);
      }
    });
    removed += stale.length;
    if (stale.length < SLICE) return removed;
  }
}
