import { CollabError } from '../../model/errors.ts';
import { roomOfEvent } from '../../model/event.ts';
import { inScope } from '../../model/room.ts';
import { requireRead } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { redactErasedUsers } from '../users/erasure.ts';
import { epochOf, streamOf } from './streams.ts';

/** What `GET /events` asks for. */
export interface EventsQuery {
  /** Events after this position. */
  readonly since: number;
  /** 1 to 1 000. */
  readonly limit: number;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;

/**
 * Parses `since` (0 when absent) and `limit` (100 when absent, over 1 000 counts as 1 000).
 * Throws `invalid_request` naming the parameter.
 */
export function parseEventsQuery(search: URLSearchParams): EventsQuery {
  const since = parseInteger('since', search.get('since') ?? '0', 0);
  const limit = parseInteger('limit', search.get('limit') ?? String(DEFAULT_LIMIT), 1);
  return { since, limit: Math.min(limit, MAX_LIMIT) };
}

/**
 * The log after a position, as `{"items":[…],"epoch":…,"seq":…,"oldestSeq":…}`, with `nextSince` when more remain.
 * `seq` is the last position of the log. A `since` below `oldestSeq - 1`, or taken under another `epoch`, has missed
 * events: its owner reloads. Events of users who have been erased come without personal data, events that the credential may not see (`canSeeEvent`) are left out.
 */
export async function listEvents(ctx: Context, actor: Actor, since: number, limit: number): Promise<string> {
  requireRead(actor);
  const stream = streamOf(actor.environment);
  const events = await redactErasedUsers(ctx.store, actor.environment.id, await ctx.store.events(stream, since, limit));
  // After the events: a trim between the two then shows as the gap that it may have made, never the other way about.
  const kept = await ctx.store.oldestSeq(stream);
  const oldest = events[0]?.seq === since + 1 ? Math.min(kept, since + 1) : kept;
  const last = events.at(-1)?.seq ?? since;
  const seq = Math.max(await ctx.store.lastSeq(stream), events.at(-1)?.seq ?? 0);
  const visible = events.filter((event) => canSeeEvent(actor, event.text));
  const items = visible.map((event) => event.text).join(',');
  const next = events.length > 0 && last < seq ? `,"nextSince":${last}` : '';
  return `{"items":[${items}],"epoch":${JSON.stringify(epochOf(ctx.store, actor.environment))},"seq":${seq},"oldestSeq":${oldest}${next}}`;
}

/** Whether an actor may see a rendered event: one that is confined to rooms sees those of its rooms, and none of users. */
export function canSeeEvent(actor: Actor, event: string): boolean {
  if (actor.rooms === null) return true;
  const roomId = roomOfEvent(event);
  return roomId !== null && inScope(actor.rooms, roomId);
}

function parseInteger(name: string, text: string, least: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value < least) throw new CollabError('invalid_request', `${name} must be an integer of at least ${least}`);
  return value;
}
