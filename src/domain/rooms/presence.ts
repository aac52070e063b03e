import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environment.ts';
import type { Presence, PresenceState } from '../../model/presence.ts';
import type { User } from '../../model/user.ts';
import type { SharedRecord } from '../../ports/shared.ts';
import { requireRead } from '../access/access.ts';
import { checkId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { escapeId, usersOf } from '../records/partitions.ts';

/** How long a user whose last connection is lost stays in the room: a page that is reloaded was never away. */
export const GRACE_MS = 10_000;
/** Owner of the records of connections that are lost: a crash of a worker must not take them along. */
const NO_OWNER = '';

/**
 * A connection in a room, as it stands in shared memory. `joinedAt` and `activeAt` are shown to clients: milliseconds since
 * the epoch. `stateAt` and `leftAt` are compared with each other and with the present: `Clock.monotonic`.
 */
export interface Membership {
  readonly userId: string;
  readonly connectionId: string;
  /** When the user came, with this tab or an earlier one. */
  readonly joinedAt: number;
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the state was set; 0 for never. */
  readonly stateAt: number;
  /** When the connection was lost; null while it is there. */
  readonly leftAt: number | null;
}

/** A user in a room: all the connections together. */
export interface PresentUser {
  readonly userId: string;
  /** Those that are there; none during the grace. */
  readonly connectionIds: readonly string[];
  readonly joinedAt: number;
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the grace ends, by `Clock.monotonic`; null while a connection is there. */
  readonly leavesAt: number | null;
}

/** What a presence shows of a user besides. */
export type Profile = Pick<User, 'name' | 'avatarUrl'>;

/** The key of a room in shared memory, and its topic on the bus. */
export const presenceKey = (environmentId: string, roomId: string): string => `room/${environmentId}/${escapeId(roomId)}`;

/** Puts a connection into a room. A user who is there already, or left a moment ago, keeps `joinedAt`. */
export function addMembership(ctx: Context, owner: string, key: string, by: Pick<Membership, 'userId' | 'connectionId'>, state: PresenceState | undefined): Membership {
  const now = ctx.clock.now();
  const ofUser = recordPrefix(by.userId);
  const own = groupByUser(ctx.shared.list(key).filter(({ text }) => text.startsWith(ofUser)).map(parseMembership), ctx.clock.monotonic());
  const { userId, connectionId } = by;
  const membership = { userId, connectionId, joinedAt: own[0]?.joinedAt ?? now, activeAt: now, state: state ?? {}, stateAt: state === undefined ? 0 : ctx.clock.monotonic(), leftAt: null };
  return putMembership(ctx, owner, key, membership);
}

/** Writes a changed membership of a connection that is there, and gives it back. */
export function putMembership(ctx: Context, owner: string, key: string, membership: Membership): Membership {
  ctx.shared.put({ key, name: membership.connectionId, owner, text: renderMembership(membership) });
  return membership;
}

/** Takes a connection that is lost out of a room: from now on the grace runs, unless the user has another one there. */
export function markDisconnected(ctx: Context, key: string, membership: Membership): void {
  putMembership(ctx, NO_OWNER, key, { ...membership, leftAt: ctx.clock.monotonic() });
}

/** Takes a connection that wants to leave out of a room at once. */
export function deleteMembership(ctx: Context, key: string, { connectionId }: Membership): void {
  ctx.shared.delete(key, connectionId);
}

/** Removes the lost connections of a user from a room before their grace period ends. Returns their ids. */
export function deleteDisconnected(ctx: Context, key: string, userId: string): string[] {
  const ofUser = recordPrefix(userId);
  const lost = ctx.shared.list(key).filter(({ owner, text }) => owner === NO_OWNER && text.startsWith(ofUser));
  for (const { name } of lost) ctx.shared.delete(key, name);
  return lost.map(({ name }) => name);
}

/** The users in a room as of now, in the order in which they came. */
export function presentUsers(ctx: Context, key: string): PresentUser[] {
  return groupByUser(listMemberships(ctx, key), ctx.clock.monotonic());
}

/** The memberships of a room as of now, in the order of their connection ids. */
export function listMemberships(ctx: Context, key: string): Membership[] {
  return ctx.shared.list(key).map(parseMembership);
}

/** The membership of one connection as of now; undefined if it is not in the room. */
export function membershipOf(ctx: Context, key: string, connectionId: string): Membership | undefined {
  const record = ctx.shared.get(key, connectionId);
  return record === undefined ? undefined : parseMembership(record);
}

/** Whether a membership no longer counts: its connection was lost, and the grace period has ended. `now` is `Clock.monotonic`. */
export function isExpired({ leftAt }: Membership, now: number): boolean {
  return leftAt !== null && leftAt + GRACE_MS <= now;
}

/** Whether a connection is in a room. Any text may be asked for: clients send it. */
export function isPresent(ctx: Context, key: string, connectionId: string): boolean {
  if (!/^[\x21-\x7e]{1,64}$/.test(connectionId)) return false;
  const record = ctx.shared.get(key, connectionId);
  return record !== undefined && record.owner !== NO_OWNER;
}

/** Name and picture of a user as they are now; nulls for one who has been erased. */
export async function profileOf(ctx: Context, environmentId: string, userId: string): Promise<Profile> {
  return (await findProfile(ctx, environmentId, userId)) ?? { name: null, avatarUrl: null };
}

async function findProfile(ctx: Context, environmentId: string, userId: string): Promise<Profile | null> {
  const stored = await ctx.store.get(usersOf(environmentId), escapeId(userId));
  if (stored === undefined) return null;
  const { name, avatarUrl } = JSON.parse(stored) as User;
  return { name, avatarUrl };
}

/** A user in a room as it leaves the server. */
export function presenceOf(user: PresentUser, { name, avatarUrl }: Profile): Presence {
  const { userId, connectionIds, joinedAt, activeAt, state } = user;
  return {
    userId,
    name,
    avatarUrl,
    connections: Math.max(1, connectionIds.length),
    joinedAt: timestamp(joinedAt),
    lastActiveAt: timestamp(activeAt),
    state,
  };
}

/** Who is in a room, without those who have been erased: `{"items":[…]}`, empty for a room that does not exist. Throws `forbidden`, `invalid_request`. */
export async function listPresence(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireRead(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  const users = presentUsers(ctx, presenceKey(id, roomId));
  const rows = await Promise.all(
    users.map(async (user) => {
      const person = await findProfile(ctx, id, user.userId);
      return person === null ? null : presenceOf(user, person);
    }),
  );
  return JSON.stringify({ items: rows.filter((row) => row !== null) });
}

/** Lets go of what a worker that has ended still held in shared memory: whom it had in rooms leaves after the grace. */
export function releaseOwner(ctx: Context, owner: string): void {
  for (const record of ctx.shared.listByOwner(owner)) markDisconnected(ctx, record.key, parseMembership(record));
  ctx.shared.deleteOwner(owner);
}

/** Forgets the connections whose grace is over. */
export function sweepPresence(ctx: Context): void {
  const over = ctx.clock.monotonic() - GRACE_MS;
  for (const record of ctx.shared.listByOwner(NO_OWNER)) {
    const { leftAt, connectionId } = parseMembership(record);
    if (leftAt !== null && leftAt <= over) ctx.shared.delete(record.key, connectionId);
  }
}

/** The users of memberships, in the order in which they came. `now` is `Clock.monotonic`. */
export function groupByUser(memberships: readonly Membership[], now: number): PresentUser[] {
  const byUser = new Map<string, Membership[]>();
  for (const membership of memberships) {
    const { userId } = membership;
    if (isExpired(membership, now)) continue;
    const known = byUser.get(userId);
    if (known === undefined) byUser.set(userId, [membership]);
    else known.push(membership);
  }
  return [...byUser.values()].map(mergeMemberships).sort((a, b) => a.joinedAt - b.joinedAt || (a.userId < b.userId ? -1 : 1));
}

/** What several connections of one user, at least one, come to. Those that are lost count only where all are. */
function mergeMemberships(memberships: readonly Membership[]): PresentUser {
  const there = memberships.filter(({ leftAt }) => leftAt === null);
  const counted = there.length > 0 ? there : memberships;
  const latest = counted.reduce((best, next) => (next.stateAt > best.stateAt ? next : best));
  return {
    userId: latest.userId,
    connectionIds: there.map(({ connectionId }) => connectionId),
    joinedAt: Math.min(...counted.map(({ joinedAt }) => joinedAt)),
    activeAt: Math.max(...counted.map(({ activeAt }) => activeAt)),
    state: latest.state,
    leavesAt: there.length > 0 ? null : Math.max(...counted.map(({ leftAt }) => leftAt ?? 0)) + GRACE_MS,
  };
}

// The user comes first, so that the records of one are found without parsing all.
const recordPrefix = (userId: string): string => `{"userId":${JSON.stringify(userId)},`;

function renderMembership({ userId, connectionId, joinedAt, activeAt, state, stateAt, leftAt }: Membership): string {
  return JSON.stringify({ userId, connectionId, joinedAt, activeAt, state, stateAt, leftAt });
}

function parseMembership({ text }: SharedRecord): Membership {
  return JSON.parse(text) as Membership;
}
