import { environmentById } from '../../domain/environments/environments.ts';
import { recheckCredentials, TOKEN_TOLERANCE_SECONDS } from '../../domain/access/tokens.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { CollabError } from '../../model/errors.ts';
import type { Connection } from '../session/connection.ts';
import type { Feed } from '../feed/hub.ts';
import { RESTART } from './socket-writer.ts';
import { PING_FRAME, refuse, tokenExpiringFrame } from './protocol.ts';
import type { Services } from '../session/services.ts';

/** How often the one timer of a worker turns, in milliseconds. */
const TURN_MS = 250;
/** Least time between two looks at every connection. */
const ROUND_MS = 1_000;
/** How long before `exp` a client is told that its token is about to expire. */
const WARNING_MS = 60_000;

/**
 * The one timer of a worker: whatever is due by time on its sockets is found by looking at all of them once a second. A
 * timer per socket would cost more than the socket.
 */
export class Heartbeat {
  readonly #services: Services;
  readonly #timer: NodeJS.Timeout;
  readonly #stopFollowing: () => void;
  #lastRound = Number.NEGATIVE_INFINITY;

  constructor(services: Services) {
    this.#services = services;
    this.#timer = setInterval(() => this.turn(), TURN_MS);
    this.#timer.unref();
    this.#stopFollowing = services.ctx.store.follow((stream, event) => {
      const feed = event === null ? services.hub.feeds.get(stream) : undefined;
      if (feed !== undefined) this.#review(feed);
    });
  }

  /** Does what is due by the clock. Tests turn it by hand. */
  turn(): void {
    const { ctx, limits, pendingSockets, hub, rooms } = this.#services;
    const now = ctx.clock.monotonic();
    limits.now = now;
    pendingSockets.expire(now);
    rooms.turn(now);
    if (now - this.#lastRound < ROUND_MS) return;
    this.#lastRound = now;
    for (const feed of hub.feeds.values()) {
      feed.mark();
      for (const connection of feed.members) this.#attend(connection, now, ctx.clock.now());
      this.#review(feed);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopFollowing();
  }

  /**
   * @param now by the monotonic clock
   * @param wallNow milliseconds since the epoch, which the expiry of a token is measured by
   */
  #attend(connection: Connection, now: number, wallNow: number): void {
    const { writer, expiresAt } = connection;
    if (!connection.welcomed) return;
    if (wallNow >= expiresAt + TOKEN_TOLERANCE_SECONDS * 1000) {
      refuse(writer, new CollabError('token_expired', 'The token has expired: get a new one and connect again'));
    } else if (!connection.warned && wallNow >= expiresAt - WARNING_MS) {
      connection.warned = true;
      writer.send(tokenExpiringFrame(expiresAt));
    } else if (now - Math.max(writer.lastSentAt, connection.channel?.publishedAt ?? 0) >= this.#services.config.ws.heartbeatSeconds * 1000) {
      writer.send(PING_FRAME);
    }
  }

  /** Closes the sockets of an environment that has been disabled, deleted or imported anew, and those whose keys are good no more. */
  #review(feed: Feed): void {
    this.#closeRefused(feed).catch((error: unknown) => {
      const gone = error instanceof CollabError && error.code === 'environment_not_found';
      if (gone) this.#closeAll(feed, new CollabError('forbidden', 'The environment has been deleted'));
      else this.#services.log.warn({ err: error, environment: feed.environment.id }, 'the environment of open sockets could not be read');
    });
  }

  async #closeRefused(feed: Feed): Promise<void> {
    const { ctx } = this.#services;
    const environment = await environmentById(ctx, feed.environment.id);
    if (streamOf(environment) !== feed.stream) {
      // Deleted and imported again: the client loads anew, because its next welcome has another epoch.
      for (const { writer } of feed.members) writer.close(RESTART.code, RESTART.reason);
      return;
    }
    feed.environment = environment;
    if (environment.disabled) {
      this.#closeAll(feed, new CollabError('environment_disabled', 'The environment has been disabled'));
      return;
    }
    const judge = await recheckCredentials(ctx, environment, feed.members);
    for (const connection of feed.members) {
      const refusal = judge(connection);
      if (refusal !== null) refuse(connection.writer, refusal);
    }
  }

  #closeAll(feed: Feed, error: CollabError): void {
    for (const connection of feed.members) refuse(connection.writer, error);
  }
}
