import type { StreamEvent } from '../../model/frames.ts';
import { CollabError } from '../errors.ts';

/** A page of the log of an environment. */
export interface EventPage {
  readonly items: readonly StreamEvent[];
  /** Identifies the log: positions of another epoch are not valid in it. */
  readonly epoch: string;
  /** Position of the last event of the log. */
  readonly seq: number;
  /** Position of the oldest event still kept. */
  readonly oldestSeq: number;
  /** The `since` of the next page; absent when no events remain. */
  readonly nextSince?: number;
}

/** One page of events when it is awaited; all events after a position, page after page, when it is iterated. */
export type EventList = Promise<EventPage> & AsyncIterable<StreamEvent>;

/**
 * Reads the first page at once, and the others as an iteration needs them. Each further iteration reads the log anew.
 * An iteration rejects with `protocol` if events between two pages are lost: the log was replaced, or trimmed
 * meanwhile.
 */
export function eventList(read: (since: number) => Promise<EventPage>, since: number): EventList {
  const first = read(since);
  let unused: Promise<EventPage> | null = first;
  return Object.assign(first, {
    [Symbol.asyncIterator]: () => {
      const start = unused ?? read(since);
      unused = null;
      return iterate(read, start);
    },
  });
}

async function* iterate(
  read: (since: number) => Promise<EventPage>,
  first: Promise<EventPage>,
): AsyncGenerator<StreamEvent, void, undefined> {
  const { epoch } = await first;
  for (let page = await first; ;) {
    yield* page.items;
    const { nextSince } = page;
    if (nextSince === undefined) return;
    page = await read(nextSince);
    if (page.epoch !== epoch || page.oldestSeq > nextSince + 1)
      throw new CollabError(
        'protocol',
        `The events after position ${nextSince} are gone: read all data again, and events from position ` +
          `${page.seq} of the epoch ${page.epoch}.`,
      );
  }
}
