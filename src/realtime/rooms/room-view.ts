import { presenceOf, type PresentUser, type Profile } from '../../domain/rooms/presence.ts';

/** A user in a room as clients see it. */
interface Row {
  /** JSON text. */
  readonly text: string;
  /** `text` without the time of the last activity, of which a change alone is not sent. */
  readonly comparable: string;
}

/** A change of the users in a room, as sent to clients; `data` is JSON text. */
export interface PresenceChange {
  readonly type: 'presence.joined' | 'presence.updated' | 'presence.left';
  readonly userId: string;
  readonly data: string;
}

/**
 * The users in a room as the sockets of one worker know them. Every change that is sent is the difference to the state
 * before, so clients stay consistent even if messages between workers are lost or repeated.
 */
export class RoomView {
  #rows = new Map<string, Row>();
  #connections = new Set<string>();

  /** The rows as a JSON array, in the order in which the users joined. */
  get items(): string {
    return `[${[...this.#rows.values()].map(({ text }) => text).join(',')}]`;
  }

  /** Whether a user is in the room. */
  has(userId: string): boolean {
    return this.#rows.has(userId);
  }

  /** Whether a connection is in the room. */
  hasConnection(connectionId: string): boolean {
    return this.#connections.has(connectionId);
  }

  /** Replaces the users and returns the changes. */
  update(users: readonly PresentUser[], profiles: ReadonlyMap<string, Profile>): PresenceChange[] {
    const before = this.#rows;
    this.#rows = new Map();
    this.#connections = new Set(users.flatMap(({ connectionIds }) => connectionIds));
    const changes: PresenceChange[] = [];
    for (const user of users) {
      const { userId } = user;
      const known = before.get(userId);
      // During the grace period the user is shown as before, because it may reconnect.
      const row = known !== undefined && user.leavesAt !== null ? known : rowOf(user, profiles.get(userId));
      this.#rows.set(userId, row);
      if (known === undefined) changes.push({ type: 'presence.joined', userId, data: row.text });
      else if (known.comparable !== row.comparable) changes.push({ type: 'presence.updated', userId, data: row.text });
    }
    for (const userId of before.keys()) {
      if (!this.#rows.has(userId)) changes.push({ type: 'presence.left', userId, data: JSON.stringify({ userId }) });
    }
    return changes;
  }
}

function rowOf(user: PresentUser, profile: Profile = { name: null, avatarUrl: null }): Row {
  const presence = presenceOf(user, profile);
  const { connectionIds } = user;
  return { text: JSON.stringify({ ...presence, connectionIds }), comparable: JSON.stringify({ ...presence, lastActiveAt: null, connectionIds }) };
}
