import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { Presence, PresenceState } from '../../model/presence.ts';
import type { User } from '../../model/user.ts';
import type { SharedRecord } from '../../ports/shared.ts';
import { requireRead } from '../access/access.ts';
import { checkRoomId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import { parseRecord, readRecord } from '../records/record.ts';

/**
 * How long a user stays present after their last connection was lost. A user who reconnects within this time stays
 * present.
 */
export const GRACE_MS = 10_000;
/** Owner of the memberships of lost connections, which outlive the worker that had the connection. */
const NO_OWNER = '';

/**
 * One connection in one room, as stored in shared memory. `joinedAt` and `activeAt` are shown to clients and are
 * milliseconds since the epoch. `stateAt` and `leftAt` are compared with each other and with the current time and are
 * `Clock.monotonic`.
 */
export interface Membership {
  readonly userId: string;
  readonly connectionId: string;
  /** When the user joined, with this connection or an earlier one. */
  readonly joinedAt: number;
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the state was set; 0 for never. */
  readonly stateAt: number;
  /** When the connection was lost; null while it is open. */
  readonly leftAt: number | null;
}

/** A user in a room, made of all their memberships. */
export interface PresentUser {
  readonly userId: string;
  /** The open connections; empty during the grace period. */
  readonly connectionIds: readonly string[];
  readonly joinedAt: number;
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the grace period ends, by `Clock.monotonic`; null while a connection is open. */
  readonly leavesAt: number | null;
}

/** The fields of a user that presence shows. */
export type Profile = Pick<User, 'name' | 'avatarUrl'>;

/** The key of a room in shared memory, and the name of its topic on the bus. */
export const presenceKey = (environmentId: string, roomId: string): string =>
  `room/${environmentId}/${escapeId(roomId)}`;

/** The membership of a connection that joins now as the first one of its user, for `putMembership`. */
export function newMembership(
  { clock }: Context,
  connection: Pick<Membership, 'userId' | 'connectionId'>,
  state: PresenceState | undefined,
): Membership {
  const { userId, connectionId } = connection;
  const now = clock.now();
  return {
    userId,
    connectionId,
    joinedAt: now,
    activeAt: now,
    state: state ?? {},
    stateAt: state === undefined ? 0 : clock.monotonic(),
    leftAt: null,
  };
}

/** When a user who is in a room, or within the grace period, joined it; null for one who is not. */
export async function joinedAtOf(ctx: Context, key: string, userId: string): Promise<number | null> {
  const prefix = recordPrefix(userId);
  const records = await ctx.shared.list(key);
  const [present] = groupByUser(
    records.filter(({ text }) => text.startsWith(prefix)).map(parseMembership),
    ctx.clock.monotonic(),
  );
  return present?.joinedAt ?? null;
}

/** Writes a membership, in place of an earlier one of the connection. */
export function putMembership(ctx: Context, owner: string, key: string, membership: Membership): Promise<void> {
  return ctx.shared.put({ key, name: membership.connectionId, owner, text: renderMembership(membership) });
}

/** Records that a connection was lost. The grace period begins, unless the user has another connection in the room. */
export function markDisconnected(ctx: Context, key: string, membership: Membership): Promise<void> {
  return putMembership(ctx, NO_OWNER, key, { ...membership, leftAt: ctx.clock.monotonic() });
}

/** Removes a connection that leaves a room, without a grace period. */
export function deleteMembership(ctx: Context, key: string, { connectionId }: Membership): Promise<void> {
  return ctx.shared.delete(key, connectionId);
}

/** Removes the lost connections of a user from a room before their grace period ends. Returns their connection ids. */
export async function deleteDisconnected(ctx: Context, key: string, userId: string): Promise<string[]> {
  const prefix = recordPrefix(userId);
  const disconnected = (await ctx.shared.list(key)).filter(
    ({ owner, text }) => owner === NO_OWNER && text.startsWith(prefix),
  );
  await Promise.all(disconnected.map(({ name }) => ctx.shared.delete(key, name)));
  return disconnected.map(({ name }) => name);
}

/** The users who are in a room now, in the order in which they joined. */
export async function presentUsers(ctx: Context, key: string): Promise<PresentUser[]> {
  return groupByUser(await listMemberships(ctx, key), ctx.clock.monotonic());
}

/** The memberships of a room as of now, in the order of their connection ids. */
export async function listMemberships(ctx: Context, key: string): Promise<Membership[]> {
  return (await ctx.shared.list(key)).map(parseMembership);
}

/** The membership of one connection as of now; undefined if it is not in the room. */
export async function membershipOf(ctx: Context, key: string, connectionId: string): Promise<Membership | undefined> {
  const record = await ctx.shared.get(key, connectionId);
  return record === undefined ? undefined : parseMembership(record);
}

/**
 * Whether a membership no longer counts: its connection was lost, and the grace period has ended. `now` is
 * `Clock.monotonic`.
 */
export function isExpired({ leftAt }: Membership, now: number): boolean {
  return leftAt !== null && leftAt + GRACE_MS <= now;
}

/** Whether a connection is in a room. `connectionId` may be any text, since clients send it. */
export async function isPresent(ctx: Context, key: string, connectionId: string): Promise<boolean> {
  if (!/^[\x21-\x7e]{1,64}$/.test(connectionId)) return false;
  const record = await ctx.shared.get(key, connectionId);
  return record !== undefined && record.owner !== NO_OWNER;
}

/** The current name and picture of a user; nulls for an erased user. */
export async function profileOf(ctx: Context, environmentId: string, userId: string): Promise<Profile> {
  return (await findProfile(ctx, environmentId, userId)) ?? { name: null, avatarUrl: null };
}

async function findProfile(ctx: Context, environmentId: string, userId: string): Promise<Profile | null> {
  const user = await readRecord<User>(ctx.store, usersOf(environmentId), escapeId(userId));
  return user === undefined ? null : { name: user.name, avatarUrl: user.avatarUrl };
}

/** The public view of a user in a room. */
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

/**
 * The users in a room, without erased ones: `{"items":[…]}`, empty for an unknown room. Throws `forbidden`,
 * `invalid_request`.
 */
export async function listPresence(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireRead(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  const users = await presentUsers(ctx, presenceKey(id, roomId));
  const rows = await Promise.all(
    users.map(async (user) => {
      const profile = await findProfile(ctx, id, user.userId);
      return profile === null ? null : presenceOf(user, profile);
    }),
  );
  return JSON.stringify({ items: rows.filter((row) => row !== null) });
}

/**
 * Releases the shared memory of a worker that has ended. Its connections count as lost: their users leave after the
 * grace period.
 */
export async function releaseOwner(ctx: Context, owner: string): Promise<void> {
  const records = await ctx.shared.listByOwner(owner);
  await Promise.all(records.map((record) => markDisconnected(ctx, record.key, parseMembership(record))));
  await ctx.shared.deleteOwner(owner);
}

/** Removes the lost connections whose grace period is over. */
export async function sweepPresence(ctx: Context): Promise<void> {
  const end = ctx.clock.monotonic() - GRACE_MS;
  for (const record of await ctx.shared.listByOwner(NO_OWNER)) {
    const { leftAt, connectionId } = parseMembership(record);
    if (leftAt !== null && leftAt <= end) await ctx.shared.delete(record.key, connectionId);
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
  return [...byUser.values()]
    .map(mergeMemberships)
    .sort((a, b) => a.joinedAt - b.joinedAt || (a.userId < b.userId ? -1 : 1));
}

/** Merges the memberships of one user, at least one. Lost connections count only if all are lost. */
function mergeMemberships(memberships: readonly Membership[]): PresentUser {
  const open = memberships.filter(({ leftAt }) => leftAt === null);
  const counted = open.length > 0 ? open : memberships;
  const latest = counted.reduce((best, next) => (next.stateAt > best.stateAt ? next : best));
  return {
    userId: latest.userId,
    connectionIds: open.map(({ connectionId }) => connectionId),
    joinedAt: Math.min(...counted.map(({ joinedAt }) => joinedAt)),
    activeAt: Math.max(...counted.map(({ activeAt }) => activeAt)),
    state: latest.state,
    leavesAt: open.length > 0 ? null : Math.max(...counted.map(({ leftAt }) => leftAt ?? 0)) + GRACE_MS,
  };
}

// The user id is the first field, so that the records of one user are found without parsing all records.
const recordPrefix = (userId: string): string => `{"userId":${JSON.stringify(userId)},`;

function renderMembership({ userId, connectionId, joinedAt, activeAt, state, stateAt, leftAt }: Membership): string {
  return JSON.stringify({ userId, connectionId, joinedAt, activeAt, state, stateAt, leftAt });
}

function parseMembership({ text }: SharedRecord): Membership {
  return parseRecord<Membership>(text);
}
