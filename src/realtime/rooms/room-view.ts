import type { Membership } from '../../domain/rooms/membership.ts';
import { groupByUser, presenceOf, type PresentUser, type Profile } from '../../domain/rooms/presence.ts';

/** A user in a room as clients see it. */
interface Row {
  readonly userId: string;
  readonly joinedAt: number;
  /** JSON text. */
  readonly text: string;
  /** `text` without the time of the last activity, of which a change alone is not sent. */
  readonly comparable: string;
}

/** Users whose memberships have changed. */
export interface ChangedUsers {
  readonly userIds: readonly string[];
  /** Those of them that are in the room. */
  readonly present: readonly PresentUser[];
}

/** A change of the users in a room, as sent to clients; `data` is JSON text. */
export interface PresenceChange {
  readonly type: 'presence.joined' | 'presence.updated' | 'presence.left';
  readonly userId: string;
  readonly data: string;
}

/**
 * One worker's copy of the memberships of a room, and the rows that its sockets were sent. Every change that is sent is
 * the difference to the row sent before, so clients stay consistent even if messages between workers are lost or
 * repeated.
 */
export class RoomView {
  /** By user id, then by connection id. */
  readonly #memberships = new Map<string, Map<string, Membership>>();
  /** The user of each connection. */
  readonly #userOf = new Map<string, string>();
  /** By user id. */
  readonly #rows = new Map<string, Row>();
  /** Users whose row may have to change. */
  readonly #changed = new Set<string>();
  /** Users without a connection -> when their grace period ends at the earliest, by `Clock.monotonic`. */
  readonly #leavesAt = new Map<string, number>();

  /** The rows as a JSON array, in the order in which the users joined. */
  get items(): string {
    const rows = [...this.#rows.values()].sort((a, b) => a.joinedAt - b.joinedAt || (a.userId < b.userId ? -1 : 1));
    return `[${rows.map(({ text }) => text).join(',')}]`;
  }

  /** Whether a user has a membership, also one that is within the grace period. */
  has(userId: string): boolean {
    return this.#memberships.has(userId);
  }

  /** Whether a connection is in the room. */
  hasConnection(connectionId: string): boolean {
    const userId = this.#userOf.get(connectionId);
    return userId !== undefined && this.#memberships.get(userId)?.get(connectionId)?.leavesAt === null;
  }

  /** Replaces the membership of one connection; undefined removes it. */
  set(connectionId: string, membership: Membership | undefined): void {
    this.#delete(connectionId);
    if (membership !== undefined) this.#add(membership);
  }

  /** Replaces all memberships. The next update compares the rows of all users. */
  replaceAll(memberships: readonly Membership[]): void {
    for (const userId of this.#rows.keys()) this.#changed.add(userId);
    this.#memberships.clear();
    this.#userOf.clear();
    for (const membership of memberships) this.#add(membership);
  }

  /** Lets the next update render the row of a user again, e.g. because its profile has changed. */
  invalidate(userId: string): void {
    this.#changed.add(userId);
  }

  /**
   * The connections of users whose grace period may have ended by `now`, `Clock.monotonic`: their memberships must be
   * read again.
   */
  expired(now: number): readonly string[] {
    const due = [...this.#leavesAt].filter(([, leavesAt]) => leavesAt <= now).map(([userId]) => userId);
    for (const userId of due) this.#leavesAt.delete(userId);
    return due.flatMap((userId) => [...(this.#memberships.get(userId)?.keys() ?? [])]);
  }

  /** Returns the users that have changed since the last call, for `update`. */
  takeChanged(): ChangedUsers {
    const userIds = [...this.#changed];
    this.#changed.clear();
    const memberships = userIds.flatMap((userId) => [...(this.#memberships.get(userId)?.values() ?? [])]);
    // Grouping depends on the order, which must be the same on every worker.
    memberships.sort((a, b) => (a.connectionId < b.connectionId ? -1 : 1));
    return { userIds, present: groupByUser(memberships) };
  }

  /**
   * Renders the rows of changed users and returns the changes to send: users who joined, in that order, before those
   * who left.
   */
  update({ userIds, present }: ChangedUsers, profiles: ReadonlyMap<string, Profile>): PresenceChange[] {
    const changes: PresenceChange[] = [];
    const gone = new Set(userIds);
    for (const user of present) {
      const { userId, leavesAt } = user;
      gone.delete(userId);
      if (leavesAt === null) this.#leavesAt.delete(userId);
      else this.#leavesAt.set(userId, leavesAt);
      const known = this.#rows.get(userId);
      // During the grace period the user is shown as before, because it may reconnect.
      if (known !== undefined && leavesAt !== null) continue;
      const row = rowOf(user, profiles.get(userId));
      this.#rows.set(userId, row);
      if (known === undefined) changes.push({ type: 'presence.joined', userId, data: row.text });
      else if (known.comparable !== row.comparable) changes.push({ type: 'presence.updated', userId, data: row.text });
    }
    for (const userId of gone) {
      this.#leavesAt.delete(userId);
      if (this.#rows.delete(userId)) changes.push({ type: 'presence.left', userId, data: JSON.stringify({ userId }) });
    }
    return changes;
  }

  #add(membership: Membership): void {
    const { userId, connectionId } = membership;
    this.#userOf.set(connectionId, userId);
    const ofUser = this.#memberships.get(userId);
    if (ofUser === undefined) this.#memberships.set(userId, new Map([[connectionId, membership]]));
    else ofUser.set(connectionId, membership);
    this.#changed.add(userId);
  }

  #delete(connectionId: string): void {
    const userId = this.#userOf.get(connectionId);
    if (userId === undefined) return;
    this.#changed.add(userId);
    this.#userOf.delete(connectionId);
    const ofUser = this.#memberships.get(userId);
    ofUser?.delete(connectionId);
    if (ofUser?.size === 0) this.#memberships.delete(userId);
  }
}

function rowOf(user: PresentUser, profile: Profile = { name: null, avatarUrl: null }): Row {
  const presence = presenceOf(user, profile);
  const { userId, joinedAt, connectionIds } = user;
  return {
    userId,
    joinedAt,
    text: JSON.stringify({ ...presence, connectionIds }),
    comparable: JSON.stringify({ ...presence, lastActiveAt: null, connectionIds }),
  };
}
