import { type Clock, timestamp } from '../../lib/clock.ts';
import type { RoomStats } from '../../model/room.ts';
import { parseThreadStats } from '../../model/thread.ts';
import type { Context } from '../context.ts';
import { STATS_KEY } from '../records/partitions.ts';

// Lists are in the order of creation times. A clock that is set back would otherwise put a reply before the comment it
// answers, and hide changes from clients that ask for what was updated since (docs/decisions/0026-clocks.md).

/**
 * The time of a change that follows others: the present, or one millisecond after the latest of them where the clock has
 * been set back since.
 *
 * @param earlier ISO timestamps of what the change must come after
 * @returns milliseconds since the epoch
 */
export function timeAfter(clock: Clock, ...earlier: readonly string[]): number {
  const now = clock.now();
  const text = timestamp(now);
  let latest = text;
  for (const time of earlier) if (time > latest) latest = time;
  return latest === text ? now : Date.parse(latest) + 1;
}

/** The time of the next change in a thread, as `timeAfter`. `partition` is the thread's. */
export async function nextTimeInThread(ctx: Context, partition: string): Promise<number> {
  // Read outside of the transaction, or comments of one thread would conflict with each other.
  const stats = await ctx.store.get(partition, STATS_KEY);
  return stats === undefined ? ctx.clock.now() : timeAfter(ctx.clock, parseThreadStats(stats).updatedAt);
}

/** The time of the next thread in a room, as `timeAfter`. `partition` is the room's. */
export async function nextTimeInRoom(ctx: Context, partition: string): Promise<number> {
  const stats = await ctx.store.get(partition, STATS_KEY);
  return stats === undefined ? ctx.clock.now() : timeAfter(ctx.clock, (JSON.parse(stats) as RoomStats).lastActivityAt);
}
