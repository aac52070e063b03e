import type { Feed } from '../feed/feed.ts';
import type { Connection } from './connection.ts';

/** The authenticated connections of this worker, grouped by feed. */
export class Connections {
  readonly #byFeed = new Map<Feed, Set<Connection>>();

  /** The number of connections. */
  get size(): number {
    let size = 0;
    for (const members of this.#byFeed.values()) size += members.size;
    return size;
  }

  /** All connections. */
  *all(): Iterable<Connection> {
    for (const members of this.#byFeed.values()) yield* members;
  }

  /** The connections of one feed; empty if there are none. */
  of(feed: Feed): ReadonlySet<Connection> {
    return this.#byFeed.get(feed) ?? new Set();
  }

  /** The number of connections of each environment, by its slug. */
  *counts(): Iterable<readonly [slug: string, count: number]> {
    for (const [feed, members] of this.#byFeed) yield [feed.environment.slug, members.size];
  }

  /** Adds a connection, also to its feed. */
  add(connection: Connection): void {
    const { feed } = connection;
    const members = this.#byFeed.get(feed);
    if (members === undefined) this.#byFeed.set(feed, new Set([connection]));
    else members.add(connection);
    feed.join(connection);
  }

  /** Removes a connection that has closed, also from its feed. */
  remove(connection: Connection): void {
    const { feed } = connection;
    feed.leave(connection);
    const members = this.#byFeed.get(feed);
    members?.delete(connection);
    if (members?.size === 0) this.#byFeed.delete(feed);
  }
}
