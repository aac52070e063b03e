import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import { invalidField } from '../../model/errors.ts';
import { requireRead } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { MAX_PAGE_CHARS } from '../lists/paging.ts';
import { readEvents } from './read-events.ts';
import { epochOf, streamOf } from './streams.ts';
import { isVisibleTo, viewerOf } from './visibility.ts';

/** The parameters of `GET /events`. */
export interface EventsQuery {
  /** Events after this position. */
  readonly since: number;
  /** 1 to 1 000. */
  readonly limit: number;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** How many characters of events are read at once, between which other requests may go first. */
const READ_CHARS = 1024 * 1024;

/**
 * Parses `since` (default 0) and `limit` (default 100; more than 1 000 counts as 1 000).
 * Throws `invalid_request`, which names the parameter.
 */
export function parseEventsQuery(search: URLSearchParams): EventsQuery {
  const since = parseInteger('since', search.get('since') ?? '0', 0);
  const limit = parseInteger('limit', search.get('limit') ?? String(DEFAULT_LIMIT), 1);
  return { since, limit: Math.min(limit, MAX_LIMIT) };
}

/**
 * The events after a position, as `{"items":[…],"epoch":…,"seq":…,"oldestSeq":…}`, with `nextSince` if there are more:
 * at most `limit`, and as a page of a list at most `MAX_PAGE_CHARS` characters, but at least one. `seq` is the last
 * position of the stream. A client whose `since` is below `oldestSeq - 1`, or from another `epoch`, has missed events
 * and must reload. Personal data of erased users is removed; events that the actor may not see (`isVisibleTo`) are left
 * out.
 */
export async function listEvents(ctx: Context, actor: Actor, since: number, limit: number): Promise<string> {
  requireRead(actor);
  const stream = streamOf(actor.environment);
  const { texts, first, last } = await readVisible(ctx, actor, since, limit);
  // Read after the events: a trim in between can then report a gap that does not affect these events, but never hide
  // one.
  const stored = await ctx.store.oldestSeq(stream);
  const oldest = first === since + 1 ? Math.min(stored, since + 1) : stored;
  const seq = Math.max(await ctx.store.lastSeq(stream), first === null ? 0 : last);
  const next = first !== null && last < seq ? `,"nextSince":${last}` : '';
  return `{"items":[${texts.join(',')}],"epoch":${JSON.stringify(epochOf(ctx.store, actor.environment))},"seq":${seq},"oldestSeq":${oldest}${next}}`;
}

/**
 * Reads consecutive events after `since`. Returns the texts that the actor may see, and the positions of the first and
 * the last event read.
 */
async function readVisible(
  { store }: Context,
  actor: Actor,
  since: number,
  limit: number,
): Promise<{ texts: string[]; first: number | null; last: number }> {
  const stream = streamOf(actor.environment);
  const viewer = viewerOf(actor);
  const texts: string[] = [];
  let first: number | null = null;
  let last = since;
  let remaining = MAX_PAGE_CHARS;
  for (let count = 0; count < limit && (count === 0 || last < (await store.lastSeq(stream)));) {
    const page = { limit: limit - count, maxChars: READ_CHARS };
    const events = await readEvents(store, actor.environment, last, page);
    // Events may be trimmed between two reads. Those after the gap are for the next request, which can see it.
    if (events[0] === undefined || (first !== null && events[0].seq !== last + 1)) break;
    for (const { seq, text } of events) {
      const isVisible = isVisibleTo(viewer, text, 'hidden');
      if (isVisible && text.length > remaining && texts.length > 0) return { texts, first, last };
      first ??= seq;
      last = seq;
      count++;
      if (!isVisible) continue;
      texts.push(text);
      remaining -= text.length;
    }
    await yieldToEventLoop();
  }
  return { texts, first, last };
}

function parseInteger(name: string, text: string, minimum: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value < minimum) throw invalidField(name, `must be an integer of at least ${minimum}`, text);
  return value;
}
