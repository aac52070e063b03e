import type { EventUser, PresenceRow, StreamEvent } from '../model/frames.ts';
import type { UserSummary } from '../model/user.ts';
import type { Requests } from './session/requests.ts';

/** The most ids in one lookup. */
const MAX_IDS = 100;

/** The users that the session knows: looked up once, then kept up to date by events. */
export class UserDirectory {
  readonly #requests: Requests;
  readonly #changed: () => void;
  #users: Readonly<Record<string, UserSummary>> = {};
  /** Ids that were asked for on this connection, so that an unknown one is not asked for again and again. */
  readonly #asked = new Set<string>();
  readonly #wanted = new Set<string>();
  #scheduled = false;

  constructor(requests: Requests, changed: () => void) {
    this.#requests = requests;
    this.#changed = changed;
  }

  /** By id; the same object until something changes. */
  get all(): Readonly<Record<string, UserSummary>> {
    return this.#users;
  }

  /** Adds users that a response contained. */
  add(users: Readonly<Record<string, UserSummary>>): void {
    const changed = Object.values(users).filter((user) => !isSame(this.#users[user.userId], user));
    if (changed.length === 0) return;
    this.#users = { ...this.#users, ...Object.fromEntries(changed.map((user) => [user.userId, user])) };
    this.#changed();
  }

  /** Adds the users of `user.updated` or of presence rows, which do not say what kind they are. */
  update(
    users: readonly (Pick<PresenceRow, 'userId' | 'name' | 'avatarUrl'> & Partial<Pick<EventUser, 'kind'>>)[],
  ): void {
    this.add(
      Object.fromEntries(
        users.map(({ userId, name, avatarUrl, kind = this.#users[userId]?.kind ?? 'user' }) => [
          userId,
          { userId, name, avatarUrl, kind },
        ]),
      ),
    );
  }

  /** Asks for users, by id or text, and adds those that the server has. A durable question waits for the connection. */
  async find(which: object, durable = false): Promise<Readonly<Record<string, UserSummary>>> {
    const { users } = (await this.#requests.request('users.lookup', which, { durable })) as {
      users: Readonly<Record<string, UserSummary>>;
    };
    this.add(users);
    return users;
  }

  /** Looks up those of the users that are not known yet. */
  want(ids: Iterable<string>): void {
    for (const id of ids) if (this.#users[id] === undefined && !this.#asked.has(id)) this.#wanted.add(id);
    if (this.#wanted.size === 0 || this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      void this.#lookUp();
    });
  }

  /** A new connection: ask again for what was not found, and for what may have changed while events were missed. */
  reset(missedEvents: boolean): void {
    this.#asked.clear();
    if (!missedEvents) return;
    for (const id of Object.keys(this.#users)) this.#wanted.add(id);
    void this.#lookUp();
  }

  async #lookUp(): Promise<void> {
    while (this.#wanted.size > 0) {
      const ids = [...this.#wanted].slice(0, MAX_IDS);
      for (const id of ids) {
        this.#wanted.delete(id);
        this.#asked.add(id);
      }
      try {
        await this.find({ ids });
      } catch {
        return;
      }
    }
  }
}

function isSame(known: UserSummary | undefined, user: UserSummary): boolean {
  return known?.name === user.name && known.avatarUrl === user.avatarUrl && known.kind === user.kind;
}

/** The ids of the users that an event names. */
export function usersOfEvent(event: StreamEvent): string[] {
  switch (event.type) {
    case 'thread.created':
      return usersIn(event.data.comment);
    case 'comment.created':
    case 'comment.updated':
    case 'reaction.created':
      return usersIn(event.data);
    default:
      return [];
  }
}

const usersIn = ({
  userId,
  mentions = [],
}: {
  readonly userId: string;
  readonly mentions?: readonly string[];
}): string[] => [userId, ...mentions];
