import { invalidField } from '../../model/errors.ts';
import { receiverOfEvent, roomOfEvent } from '../../model/event.ts';
import { inScope } from '../../model/room.ts';
import { requireRead } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { redactErasedUsers } from '../users/erasure.ts';
import { epochOf, streamOf } from './streams.ts';

/** The parameters of `GET /events`. */
export interface EventsQuery {
  /** Events after this position. */
  readonly since: number;
  /** 1 to 1 000. */
  readonly limit: number;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

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
 * The events after a position, as `{"items":[…],"epoch":…,"seq":…,"oldestSeq":…}`, with `nextSince` if there are more. `seq`
 * is the last position of the stream. A client whose `since` is below `oldestSeq - 1`, or from another `epoch`, has missed
 * events and must reload. Personal data of erased users is removed; events that the actor may not see (`canSeeEvent`) are
 * left out.
 */
export async function listEvents(ctx: Context, actor: Actor, since: number, limit: number): Promise<string> {
  requireRead(actor);
  const stream = streamOf(actor.environment);
  const events = await redactErasedUsers(ctx.store, actor.environment.id, await ctx.store.events(stream, since, limit));
  // Read after the events: a trim in between can then report a gap that does not affect these events, but never hide one.
  const stored = await ctx.store.oldestSeq(stream);
  const oldest = events[0]?.seq === since + 1 ? Math.min(stored, since + 1) : stored;
  const last = events.at(-1)?.seq ?? since;
  const seq = Math.max(await ctx.store.lastSeq(stream), events.at(-1)?.seq ?? 0);
  const visible = events.filter((event) => canSeeEvent(actor, event.text));
  const items = visible.map((event) => event.text).join(',');
  const next = events.length > 0 && last < seq ? `,"nextSince":${last}` : '';
  return `{"items":[${items}],"epoch":${JSON.stringify(epochOf(ctx.store, actor.environment))},"seq":${seq},"oldestSeq":${oldest}${next}}`;
}

/**
 * Whether an actor may see a rendered event. An actor confined to rooms sees only events that belong to one of its rooms, so none
 * about users. A user does not see events that only another user, or only backends, may receive.
 */
export function canSeeEvent(actor: Actor, event: string): boolean {
  if (actor.kind === 'user') {
    const receiver = receiverOfEvent(event);
    if (receiver !== null && receiver !== actor.userId) return false;
  }
  if (actor.rooms === null) return true;
  const roomId = roomOfEvent(event);
  return roomId !== null && inScope(actor.rooms, roomId);
}

function parseInteger(name: string, text: string, minimum: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value < minimum) throw invalidField(name, `must be an integer of at least ${minimum}`, text);
  return value;
}
