import type { Context } from '../../domain/context.ts';
import { eventOrNull } from '../../domain/events/parse-event.ts';
import type { Store } from '../../ports/store.ts';

/** Which events of a stream are kept: those that either of the two limits keeps. */
export interface Retention {
  readonly retentionHours: number;
  /** The number of latest events that are kept however old they are. */
  readonly retentionCount: number;
}

/** How many times `retentionCount` events are kept for a consumer that has yet to handle them. */
const LAGGING_FACTOR = 10;

/**
 * Removes the events of a stream that are both too old and too many. Events that a consumer has yet to handle are kept,
 * up to ten times `retentionCount`: past that they are removed too, and the consumer reports them as lost.
 *
 * @param lowestConsumerCursor position up to which the stored cursors say that every consumer has handled the stream,
 *   so that a trim that ends late removes nothing which another process still needs; Infinity without consumers
 */
export async function trimExpiredEvents(
  { store, clock }: Context,
  stream: string,
  { retentionHours, retentionCount }: Retention,
  lowestConsumerCursor = Infinity,
): Promise<void> {
  const [oldest, last] = await Promise.all([store.oldestSeq(stream), store.lastSeq(stream)]);
  const needed = Math.max(lowestConsumerCursor, last - retentionCount * LAGGING_FACTOR);
  const tooMany = Math.min(last - retentionCount, needed);
  if (tooMany < oldest) return;
  const keptSince = new Date(clock.now() - retentionHours * 3_600_000).toISOString();
  const tooOld = await lastBefore(store, stream, keptSince, oldest, tooMany);
  if (tooOld >= oldest) await store.trimEvents(stream, tooOld);
}

/**
 * Finds the last position from `oldest` to `newest` whose event is older than `time`; `oldest - 1` if there is none.
 */
async function lastBefore(store: Store, stream: string, time: string, oldest: number, newest: number): Promise<number> {
  let low = oldest - 1;
  let high = newest;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [event] = await store.events(stream, middle - 1, 1);
    // A text that is no event is as old as those beside it; it must not keep all of them for ever.
    const isBefore = event !== undefined && (eventOrNull(event.text)?.at ?? '') < time;
    if (isBefore) low = middle;
    else high = middle - 1;
  }
  return low;
}
