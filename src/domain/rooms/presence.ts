import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { Presence, PresenceState } from '../../model/presence.ts';
import type { User } from '../../model/user.ts';
import { requireRead } from '../access/access.ts';
import { checkRoomId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { escapeId, usersOf } from '../records/partitions.ts';
import { readRecord } from '../records/record.ts';
import {
  type Membership,
  membershipPrefix,
  membershipText,
  type OwnMembership,
  readMembership,
  readMemberships,
} from './membership.ts';

/**
 * How long a user stays present after their last connection was lost. A user who reconnects within this time stays
 * present.
 */
export const GRACE_MS = 10_000;
/** Owner of the memberships of lost connections, which outlive the worker that had the connection. */
const NO_OWNER = '';

/** A user in a room, made of all their memberships. */
export interface PresentUser {
  readonly userId: string;
  /** The open connections; empty during the grace period. */
  readonly connectionIds: readonly string[];
  readonly joinedAt: number;
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the grace period ends at the earliest, by `Clock.monotonic`; null while a connection is open. */
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
  connection: Pick<OwnMembership, 'userId' | 'connectionId'>,
  state: PresenceState | undefined,
): OwnMembership {
  const { userId, connectionId } = connection;
  const now = clock.now();
  return {
    userId,
    connectionId,
    joinedAt: now,
    activeAt: now,
    state: state ?? {},
    stateSetAt: state === undefined ? null : clock.monotonic(),
  };
}

/** When a user who is in a room, or within the grace period, joined it; null for one who is not. */
export async function joinedAtOf(ctx: Context, key: string, userId: string): Promise<number | null> {
  const prefix = membershipPrefix(userId);
  const askedAt = ctx.clock.monotonic();
  const records = (await ctx.shared.list(key)).filter(({ text }) => text.startsWith(prefix));
  const [present] = groupByUser(readMemberships(records, askedAt));
  return present?.joinedAt ?? null;
}

/** Writes a membership, in place of an earlier one of the connection. It lasts as long as its owner has a lease. */
export function putMembership(ctx: Context, owner: string, key: string, membership: OwnMembership): Promise<void> {
  return ctx.shared.put({ key, name: membership.connectionId, owner, text: membershipText(ctx.clock, membership) });
}

/** Records that a connection was lost. The grace period begins, unless the user has another connection in the room. */
export function markDisconnected(ctx: Context, key: string, membership: OwnMembership): Promise<void> {
  const text = membershipText(ctx.clock, membership);
  return ctx.shared.put({ key, name: membership.connectionId, owner: NO_OWNER, text, expiresInMs: GRACE_MS });
}

/** Removes a connection that leaves a room, without a grace period. */
export function deleteMembership(ctx: Context, key: string, { connectionId }: OwnMembership): Promise<void> {
  return ctx.shared.delete(key, connectionId);
}

/** Removes the lost connections of a user from a room before their grace period ends. Returns their connection ids. */
export async function deleteDisconnected(ctx: Context, key: string, userId: string): Promise<string[]> {
  const prefix = membershipPrefix(userId);
  const disconnected = (await ctx.shared.list(key)).filter(
    ({ owner, text }) => owner === NO_OWNER && text.startsWith(prefix),
  );
  await Promise.all(disconnected.map(({ name }) => ctx.shared.delete(key, name)));
  return disconnected.map(({ name }) => name);
}

/** `partial` if the users of other processes are missing, because shared memory cannot be reached; otherwise nothing. */
export function partialOf({ shared }: Context): { readonly partial?: true } {
  return (shared.isPartial?.() ?? false) ? { partial: true } : {};
}

/** The users who are in a room now, in the order in which they joined. */
export async function presentUsers(ctx: Context, key: string): Promise<PresentUser[]> {
  return groupByUser(await listMemberships(ctx, key));
}

/** The memberships of a room as of now, in the order of their connection ids. */
export async function listMemberships(ctx: Context, key: string): Promise<Membership[]> {
  const askedAt = ctx.clock.monotonic();
  return readMemberships(await ctx.shared.list(key), askedAt);
}

/** The membership of one connection as of now; undefined if it is not in the room. */
export async function membershipOf(ctx: Context, key: string, connectionId: string): Promise<Membership | undefined> {
  const askedAt = ctx.clock.monotonic();
  const record = await ctx.shared.get(key, connectionId);
  return record === undefined ? undefined : readMembership(record, askedAt);
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
 * The users in a room, without erased ones: `{"items":[…]}`, empty for an unknown room, with `partial` if that is so.
 * Throws `forbidden`, `invalid_request`.
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
  return JSON.stringify({ items: rows.filter((row) => row !== null), ...partialOf(ctx) });
}

/**
 * Releases the shared memory of a worker that has ended. Its connections count as lost: their users leave after the
 * grace period.
 */
export function releaseOwner(ctx: Context, owner: string): Promise<void> {
  return ctx.shared.endLease(owner, GRACE_MS);
}

/** The users of memberships, in the order in which they came. */
export function groupByUser(memberships: readonly Membership[]): PresentUser[] {
  const byUser = new Map<string, Membership[]>();
  for (const membership of memberships) {
    const { userId } = membership;
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
  const open = memberships.filter(({ leavesAt }) => leavesAt === null);
  const counted = open.length > 0 ? open : memberships;
  const latest = counted.reduce((best, next) => (next.stateAt > best.stateAt ? next : best));
  return {
    userId: latest.userId,
    connectionIds: open.map(({ connectionId }) => connectionId),
    joinedAt: Math.min(...counted.map(({ joinedAt }) => joinedAt)),
    activeAt: Math.max(...counted.map(({ activeAt }) => activeAt)),
    state: latest.state,
    leavesAt: open.length > 0 ? null : Math.max(...counted.map(({ leavesAt }) => leavesAt ?? 0)),
  };
}
