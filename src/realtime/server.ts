import { setTimeout as delay } from 'node:timers/promises';
import type { TemplatedApp, WebSocketBehavior } from 'uWebSockets.js';
import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Logger } from '../observability/log.ts';
import type { Bus } from '../ports/bus.ts';
import { SocketAuthenticator } from './handshake/authenticator.ts';
import { CorkHost } from './socket/cork-host.ts';
import { Connection } from './session/connection.ts';
import { Dispatcher } from './messages/dispatcher.ts';
import { followErasures } from './feed/erasures.ts';
import { AUTH_DEADLINE_MS, PendingSocket, PendingSockets } from './handshake/pending-sockets.ts';
import { upgradeHandler } from './handshake/upgrade.ts';
import { Heartbeat } from './socket/heartbeat.ts';
import { Hub } from './feed/hub.ts';
import { SocketWriter, type SocketLimits, MAX_REPLY_BYTES, RESTART, type Socket, type SocketData } from './socket/socket-writer.ts';
import { MAX_MESSAGE_BYTES, refuse } from './socket/protocol.ts';
import { Rooms } from './rooms/rooms.ts';
import type { Services } from './session/services.ts';
import { SocketMeter } from './socket/socket-meter.ts';

export interface RealtimeDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** What sockets on other workers are told through. */
  readonly bus: Bus;
  /** Id of this worker, under which shared memory keeps what its sockets hold. */
  readonly owner: string;
  /** Where sockets and messages are counted; absent while nobody asks. */
  readonly metrics?: Metrics | undefined;
}

/** The WebSocket side of a worker. */
export interface Realtime {
  /**
   * Closes every socket with 1012, evenly over `spreadMs` milliseconds so that clients don't all come back at once, and
   * new ones as soon as they open. A socket works until it is its turn; then its messages under way are answered before
   * the close frame, for at most `patienceMs` milliseconds after the last turn. Resolves once the last close frame is
   * handed to the system.
   */
  close(spreadMs: number, patienceMs: number): Promise<void>;
  /** How many sockets are open. */
  connections(): number;
  /** Does what is due by the clock; it happens by itself four times a second. For tests, which turn their clock. */
  turn(): void;
}

/** Silence in seconds after which the core ends a socket; it pings before, so only dead peers go. */
const IDLE_SECONDS = 60;
/** Up to twice the allowed size a message is refused with words; past it the core just ends the socket. */
const CORE_MAX_MESSAGE_BYTES = MAX_MESSAGE_BYTES * 2;
/** Room above our own limits on the backlog, so that the core, which can't say 1013, never has to step in. */
const CORE_BACKLOG_MARGIN = MAX_REPLY_BYTES + 1024 * 1024;
const CLOSE_TURN_MS = 20;

/** Attaches the WebSocket of the API (`/api/v1/ws`, docs/realtime.md) to a server that doesn't listen yet. */
export function attachRealtime(app: TemplatedApp, deps: RealtimeDeps): Realtime {
  const { ctx, config, owner } = deps;
  const meter = deps.metrics === undefined ? null : new SocketMeter(deps.metrics, () => hub.feeds.values());
  const limits: SocketLimits = { now: ctx.clock.monotonic(), maxBacklog: config.ws.maxBackpressureBytes, meter };
  const hub: Hub = new Hub(app, ctx.store, limits);
  const pendingSockets = new PendingSockets(ctx, owner, config.ws.maxUnauthenticatedPerIp);
  const rooms = new Rooms({ ...deps, hub });
  const services: Services = { ...deps, limits, hub, pendingSockets, rooms };
  const server = new RealtimeServer(services);
  for (const path of ['/api/v1/ws', '/api/v1/ws/']) app.ws(path, server.behavior());
  return server;
}

class RealtimeServer implements Realtime {
  readonly #services: Services;
  readonly #authenticator: SocketAuthenticator;
  readonly #heartbeat: Heartbeat;
  readonly #corkHost = new CorkHost();
  readonly #stopErasures: () => void;
  #closing = false;

  constructor(services: Services) {
    this.#services = services;
    this.#authenticator = new SocketAuthenticator(services, new Dispatcher(services));
    this.#heartbeat = new Heartbeat(services);
    this.#stopErasures = followErasures(services);
  }

  behavior(): WebSocketBehavior<SocketData> {
    return {
      maxPayloadLength: CORE_MAX_MESSAGE_BYTES,
      maxBackpressure: this.#services.limits.maxBacklog * 2 + CORE_BACKLOG_MARGIN,
      closeOnBackpressureLimit: 1,
      idleTimeout: IDLE_SECONDS,
      sendPingsAutomatically: true,
      upgrade: upgradeHandler(this.#services, this.#corkHost, () => this.#closing),
      open: (socket) => this.#guard(socket, () => this.#open(socket)),
      message: (socket, frame, isBinary) => this.#guard(socket, () => sessionOf(socket)?.receive(frame, isBinary)),
      ping: (socket) => this.#guard(socket, () => sessionOf(socket)?.pinged()),
      pong: (socket) => this.#guard(socket, () => sessionOf(socket)?.pinged()),
      drain: (socket) => this.#guard(socket, () => sessionOf(socket)?.writer.onDrain()),
      close: (socket, code) => {
        this.#services.limits.meter?.closed(code);
        this.#guard(null, () => sessionOf(socket)?.ended());
      },
    };
  }

  connections(): number {
    let count = this.#services.pendingSockets.size;
    for (const feed of this.#services.hub.feeds.values()) count += feed.members.size;
    return count;
  }

  turn(): void {
    this.#heartbeat.turn();
  }

  async close(spreadMs: number, patienceMs: number): Promise<void> {
    this.#closing = true;
    const { hub, pendingSockets, rooms } = this.#services;
    const lines = [...pendingSockets.all, ...[...hub.feeds.values()].flatMap((feed) => [...feed.members])].map(({ writer }) => writer);
    const finished: Promise<void>[] = [];
    const turns = Math.max(1, Math.min(lines.length, Math.floor(spreadMs / CLOSE_TURN_MS)));
    for (let turn = 0; turn < turns; turn++) {
      const [from, to] = [turn, turn + 1].map((n) => Math.floor((n * lines.length) / turns));
      for (const writer of lines.slice(from, to)) finished.push(this.#finish(writer));
      if (turn + 1 < turns) await delay(spreadMs / turns);
    }
    const patience = new AbortController();
    await Promise.race([Promise.all(finished), delay(patienceMs, undefined, { signal: patience.signal }).catch(() => {})]);
    patience.abort();
    for (const writer of lines) writer.close(RESTART.code, RESTART.reason);
    this.#heartbeat.stop();
    this.#stopErasures();
    hub.stop();
    rooms.stop();
    await this.#corkHost.close();
  }

  async #finish(writer: SocketWriter): Promise<void> {
    const { session } = writer;
    if (session instanceof Connection) await session.finish(RESTART.code, RESTART.reason);
    else writer.close(RESTART.code, RESTART.reason);
  }

  #open(socket: Socket): void {
    const { session: outcome } = socket.getUserData();
    if (outcome instanceof PendingSocket || outcome instanceof Connection) return;
    const writer = new SocketWriter(socket, this.#services.limits);
    if (this.#closing || outcome.kind === 'late') writer.close(RESTART.code, RESTART.reason);
    else if (outcome.kind === 'refused') refuse(writer, outcome.error);
    else if (outcome.kind === 'known') this.#authenticator.admit(writer, outcome.user, outcome.resume, null);
    else this.#receive(new PendingSocket(writer, outcome.pass, this.#services.ctx.clock.monotonic() + AUTH_DEADLINE_MS, this.#authenticator));
  }

  #receive(pending: PendingSocket): void {
    pending.writer.attachSession(pending);
    this.#services.pendingSockets.enter(pending);
  }

  /** A throw must not reach the core. It closes the socket it happened on. */
  #guard(socket: Socket | null, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#services.log.error({ err: error }, 'a WebSocket handler failed');
      const writer = socket === null ? undefined : sessionOf(socket)?.writer;
      writer?.close(4500, 'internal');
    }
  }
}

/** Who talks on a socket; nobody on one that was refused. */
function sessionOf(socket: Socket): PendingSocket | Connection | null {
  const { session } = socket.getUserData();
  return session instanceof PendingSocket || session instanceof Connection ? session : null;
}
