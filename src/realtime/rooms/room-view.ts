import { type Profile, type PresentUser, presenceOf } from '../../domain/rooms/presence.ts';

/** How a user in a room looks to the others. */
interface Row {
  /** JSON text. */
  readonly text: string;
  /** What others are told of when it changes: all but the time of the last activity. */
  readonly sight: string;
}

/** A change of who is in a room, as the sockets there are told; `data` is JSON text. */
export interface PresenceChange {
  readonly type: 'presence.joined' | 'presence.updated' | 'presence.left';
  readonly userId: string;
  readonly data: string;
}

/**
 * Who is in a room, as the sockets of one worker have been told. Every change that they are told of is the difference
 * between two looks, so what they put together is right, whatever was lost or came twice on the way here.
 */
export class RoomView {
  #rows = new Map<string, Row>();
  #connections = new Set<string>();

  /** JSON text of the rows, in the order in which the users came. */
  get items(): string {
    return `[${[...this.#rows.values()].map(({ text }) => text).join(',')}]`;
  }

  /** Whether a user was in the room at the last look. */
  has(userId: string): boolean {
    return this.#rows.has(userId);
  }

  /** Whether a connection was in the room at the last look. */
  hasConnection(connectionId: string): boolean {
    return this.#connections.has(connectionId);
  }

  /** Takes in another look, and gives what has changed since the last. */
  update(users: readonly PresentUser[], profiles: ReadonlyMap<string, Profile>): PresenceChange[] {
    const before = this.#rows;
    this.#rows = new Map();
    this.#connections = new Set(users.flatMap(({ connectionIds }) => connectionIds));
    const changes: PresenceChange[] = [];
    for (const user of users) {
      const { userId } = user;
      const known = before.get(userId);
      // Of a tab that has gone and may come back in a moment nobody is told.
      const row = known !== undefined && user.leavesAt !== null ? known : rowOf(user, profiles.get(userId));
      this.#rows.set(userId, row);
      if (known === undefined) changes.push({ type: 'presence.joined', userId, data: row.text });
      else if (known.sight !== row.sight) changes.push({ type: 'presence.updated', userId, data: row.text });
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
  return { text: JSON.stringify({ ...presence, connectionIds }), sight: JSON.stringify({ ...presence, lastActiveAt: null, connectionIds }) };
}
