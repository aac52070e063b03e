import { TOKEN_TOLERANCE_SECONDS } from '../../domain/access/claims.ts';
import { recheckCredentials } from '../../domain/access/tokens.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { CollabError } from '../../model/errors.ts';
import type { Feed } from '../feed/feed.ts';
import type { Services } from '../services.ts';
import { PING_FRAME, refuse, tokenExpiringFrame } from '../socket/protocol.ts';
import { RESTART } from '../socket/socket-writer.ts';
import type { Connection } from './connection.ts';
import { SharedLease } from './shared-lease.ts';

/** Interval of the timer, in milliseconds. */
const TICK_MS = 225;
/**
 * Least time between two checks of every connection, in milliseconds. Every fourth tick checks them, 900 ms after the
 * last one, because a store on another machine looks for events at most 950 ms after its last look: both are one round
 * trip.
 */
const CHECK_MS = 850;
/** Least time between two frames with the position of a socket that got none of the events, in milliseconds. */
const POSITION_MS = 1_000;
/** Time before `exp` at which a client is warned that its token is about to expire, in milliseconds. */
const WARNING_MS = 60_000;

/**
 * The only timer of a worker's sockets. About once a second it checks every connection for what is due: expiry,
 * warnings and pings. A timer per socket would cost more than the socket.
 */
export class Heartbeat {
  readonly #services: Services;
  readonly #lease: SharedLease;
  readonly #timer: NodeJS.Timeout;
  readonly #unfollow: () => void;
  #checkedAt: number;
  #positionsSentAt: number;

  constructor(services: Services) {
    this.#services = services;
    this.#checkedAt = this.#positionsSentAt = services.ctx.clock.monotonic();
    this.#lease = new SharedLease(services);
    this.#timer = setInterval(() => this.tick(), TICK_MS);
    this.#timer.unref();
    this.#unfollow = services.ctx.store.follow((stream, event) => {
      const feed = event === null ? services.hub.feeds.get(stream) : undefined;
      if (feed !== undefined) this.#recheckFeed(feed);
    });
  }

  /**
   * Renews the lease in shared memory, closes pending sockets after their deadline, updates the rooms, and about once a
   * second sends skipped positions and checks the connections. Called by the timer, and by tests after they advance
   * their clock.
   */
  tick(): void {
    const { ctx, limits, pendingSockets, refusedSockets, hub, connections, rooms } = this.#services;
    const now = ctx.clock.monotonic();
    limits.now = now;
    this.#lease.tick(now);
    pendingSockets.expire(now);
    refusedSockets.expire(now);
    rooms.tick(now);
    if (now - this.#positionsSentAt >= POSITION_MS) {
      this.#positionsSentAt = now;
      for (const feed of hub.feeds.values()) feed.sendSkippedPositions();
    }
    if (now - this.#checkedAt < CHECK_MS) return;
    this.#checkedAt = now;
    for (const feed of hub.feeds.values()) {
      for (const connection of connections.of(feed)) this.#check(connection, now, ctx.clock.now());
      this.#recheckFeed(feed);
    }
  }

  /** Stops the timer. */
  stop(): void {
    clearInterval(this.#timer);
    this.#unfollow();
  }

  /**
   * @param now `Clock.monotonic`
   * @param wallNow milliseconds since the epoch, for the expiry of the token
   */
  #check(connection: Connection, now: number, wallNow: number): void {
    const { writer, expiresAt } = connection;
    if (!connection.welcomed) return;
    if (wallNow >= expiresAt + TOKEN_TOLERANCE_SECONDS * 1000) {
      refuse(writer, new CollabError('token_expired', 'The token has expired: get a new one and connect again'));
    } else if (!connection.warned && wallNow >= expiresAt - WARNING_MS) {
      connection.warned = true;
      writer.send(tokenExpiringFrame(expiresAt));
    } else if (
      now - Math.max(writer.lastSentAt, connection.audience?.publishedAt ?? 0) >=
      this.#services.config.ws.heartbeatSeconds * 1000
    ) {
      writer.send(PING_FRAME);
    }
  }

  /**
   * Closes the sockets of an environment that was disabled, deleted or imported again, and those whose credential was
   * revoked.
   */
  #recheckFeed(feed: Feed): void {
    this.#closeRefused(feed).catch((error: unknown) => {
      const deleted = error instanceof CollabError && error.code === 'environment_not_found';
      if (deleted) this.#closeAll(feed, new CollabError('forbidden', 'The environment has been deleted'));
      else
        this.#services.log.warn(
          { err: error, environment: feed.environment.id },
          'the environment of open sockets could not be read',
        );
    });
  }

  async #closeRefused(feed: Feed): Promise<void> {
    const { ctx, connections } = this.#services;
    const [environment, errorOf] = await Promise.all([
      environmentById(ctx, feed.environment.id),
      recheckCredentials(ctx, feed.environment, connections.of(feed)),
    ]);
    if (streamOf(environment) !== feed.stream) {
      // Deleted and imported again: the client reloads, because its next welcome has another epoch.
      for (const { writer } of connections.of(feed)) writer.close(RESTART.code, RESTART.reason);
      return;
    }
    feed.environment = environment;
    if (environment.disabled) {
      this.#closeAll(feed, new CollabError('environment_disabled', 'The environment has been disabled'));
      return;
    }
    for (const connection of connections.of(feed)) {
      const refusal = errorOf(connection);
      if (refusal !== null) refuse(connection.writer, refusal);
    }
  }

  #closeAll(feed: Feed, error: CollabError): void {
    for (const connection of this.#services.connections.of(feed)) refuse(connection.writer, error);
  }
}
