import { timestamp } from '../../lib/clock.ts';
import type { ModerationItem } from '../../model/moderation.ts';
import type { Context } from '../context.ts';
import { moderationOf } from '../records/partitions.ts';
import { readRecords } from '../records/record.ts';
import { findItem, removeItem, statePrefix } from './queue.ts';

/** How long decided items are kept, and reports of comments that were deleted, in milliseconds. */
const KEPT_MS = 30 * 24 * 3_600_000;
/** Items read, and removed in one transaction. */
const SLICE = 100;

/**
 * Removes the items of an environment that were decided more than 30 days ago, and those about reports of so long ago
 * whose comment was deleted, and returns their number. For the background worker.
 */
export async function sweepItems(ctx: Context, environmentId: string): Promise<number> {
  const decided = await sweep(ctx, environmentId, 'decided', () => true);
  return decided + (await sweep(ctx, environmentId, 'reported', ({ keptReports }) => keptReports !== undefined));
}

async function sweep(
  ctx: Context,
  environmentId: string,
  state: 'decided' | 'reported',
  isStale: (item: ModerationItem) => boolean,
): Promise<number> {
  const prefix = statePrefix(state);
  const end = `${prefix}${timestamp(ctx.clock.now() - KEPT_MS)}`;
  let removed = 0;
  for (let after: string | undefined; ;) {
    const slice = await readRecords<ModerationItem>(ctx.store, moderationOf(environmentId), {
      prefix,
      limit: SLICE,
      ...(after === undefined ? {} : { after }),
    });
    const old = slice.filter(({ key }) => key < end);
    const stale = old.map(({ value }) => value).filter(isStale);
    if (stale.length > 0) {
      await ctx.store.transact(async (tx) => {
        for (const found of stale) {
          const item = await findItem(tx, environmentId, found.id);
          if (item?.state === found.state) await removeItem(tx, environmentId, item);
        }
      });
    }
    removed += stale.length;
    after = slice.at(-1)?.key;
    if (old.length < SLICE) return removed;
  }
}
