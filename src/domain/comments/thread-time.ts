import { type Clock, timestamp } from '../../lib/clock.ts';
import type { RoomStats } from '../../model/room.ts';
import { parseThreadStats } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { STATS_KEY } from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';

// Lists are ordered by creation time. If the clock was set back, a reply would otherwise precede the comment it
// answers, and clients that ask for changes since a time would miss some (docs/decisions/0026-clocks.md).

/**
 * The time for a change that must come after others: now, or one millisecond after the latest of them if the clock was
 * set back since.
 *
 * @param earlier ISO timestamps of the earlier changes
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
export async function nextTimeInThread(ctx: Context, tx: Transaction, partition: string): Promise<number> {
  return timeAfterLatest(ctx, tx, partition, (stats) => parseThreadStats(stats).updatedAt);
}

/** The time of the next thread in a room, as `timeAfter`. `partition` is the room's. */
export async function nextTimeInRoom(ctx: Context, tx: Transaction, partition: string): Promise<number> {
  return timeAfterLatest(ctx, tx, partition, (stats) => parseRecord<RoomStats>(stats).lastActivityAt);
}

/**
 * The time of a change, as `timeAfter`.
 *
 * @param latest the time of the latest change in the statistics of the partition
 */
async function timeAfterLatest(
  ctx: Context,
  tx: Transaction,
  partition: string,
  latest: (stats: string) => string,
): Promise<number> {
  let time = Number.POSITIVE_INFINITY;
  // Without the guard, or comments of one thread would conflict with each other. What another node has changed since
  // matters only if its clock is ahead.
  const stats = await tx.unguarded.get(
    partition,
    STATS_KEY,
    (current) => current === undefined || Date.parse(latest(current)) <= time,
  );
  time = stats === undefined ? ctx.clock.now() : timeAfter(ctx.clock, latest(stats));
  return time;
}
