import type { Store } from '../../ports/store.ts';
import { eventOrNull } from './parse-event.ts';

/**
 * Events that are read at once, and the most that are read, so that a clock that was set back does not make all of them
 * new.
 */
const PAGE = 200;
const MAX_EVENTS = 10_000;

/**
 * The position after which a stream has the events since a time: that of the last event before it, or 0 if there is
 * none. Looks only at the last 10 000 events.
 *
 * @param time an ISO 8601 time
 */
export async function positionBefore(store: Store, stream: string, time: string): Promise<number> {
  const last = await store.lastSeq(stream);
  const lowest = Math.max(0, last - MAX_EVENTS);
  for (let end = last; end > lowest;) {
    const since = Math.max(lowest, end - PAGE);
    const events = await store.events(stream, since, end - since);
    const earlier = events.findLast(({ text }) => (eventOrNull(text)?.at ?? time) < time);
    if (earlier !== undefined) return earlier.seq;
    end = since;
  }
  return lowest;
}
