import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/schema.ts';
import type { NodeFacts } from '../domain/nodes.ts';
import type { Context } from '../domain/context.ts';
import { withTimeout } from '../lib/concurrency/deadline.ts';
import type { CoreApp, SocketBehavior } from '../net/core.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Logger } from '../observability/log.ts';
import type { Bus } from '../ports/bus.ts';
import { SocketAuthenticator } from './handshake/authenticator.ts';
import { Dispatcher } from './messages/dispatcher.ts';
import { followErasures } from './feed/erasures.ts';
import { AUTH_DEADLINE_MS, PendingSocket, PendingSockets } from './handshake/pending-sockets.ts';
import { RefusedSockets } from './handshake/refused-sockets.ts';
import { upgradeHandler } from './handshake/upgrade.ts';
import { Hub } from './feed/hub.ts';
import {
  SocketWriter,
  type SocketLimits,
  MAX_REPLY_BYTES,
  RESTART,
  type Session,
  type Socket,
  type SocketData,
} from './socket/socket-writer.ts';
import { MAX_MESSAGE_BYTES, refuse } from './socket/protocol.ts';
import { Rooms } from './rooms/rooms.ts';
import type { Services } from './services.ts';
import { Connections } from './session/connections.ts';
import { Heartbeat } from './session/heartbeat.ts';
import { SocketMeter } from './socket/socket-meter.ts';

/** Dependencies of the realtime layer of a worker. */
export interface RealtimeDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Carries publications between workers. */
  readonly bus: Bus;
  /** Id of this worker; its counts and records in shared memory carry it. */
  readonly owner: string;
  /** What this worker says of its server to the others that share the store; undefined if no other one can. */
  readonly node?: NodeFacts | undefined;
  /** Metrics of sockets and messages; absent while metrics are disabled. */
  readonly metrics?: Metrics | undefined;
}

/** The WebSocket side of a worker. */
export interface Realtime {
  /**
   * Closes every socket with 1012, evenly over `spreadMs` milliseconds so that clients do not all reconnect at once,
   * and new sockets as soon as they open. A socket works until it is closed. Its messages in progress are answered
   * before the close frame, for at most `answerMs` milliseconds after the last batch of sockets. Resolves once the last
   * close frame is handed to the operating system.
   */
  close(spreadMs: number, answerMs: number): Promise<void>;
  /** The number of open sockets. */
  connections(): number;
  /** As `Heartbeat.tick`. A timer calls it four times a second; tests call it after they advance their clock. */
  tick(): void;
}

/**
 * Silence in seconds after which the core closes a socket. It sends pings before, so that only dead peers are closed.
 */
const IDLE_SECONDS = 60;
/** A message up to twice the allowed size is refused with an error; a larger one makes the core drop the socket. */
const NATIVE_MAX_MESSAGE_BYTES = MAX_MESSAGE_BYTES * 2;
/** Bytes above our own backlog limits, so that the core, which cannot send 1013, never enforces its own. */
const NATIVE_BACKLOG_MARGIN = MAX_REPLY_BYTES + 1024 * 1024;
/** Least time between two batches of sockets that are closed, in milliseconds. */
const CLOSE_BATCH_MS = 20;

/** Attaches the WebSocket of the API (`/api/v1/ws`, docs/realtime.md) to a server that does not listen yet. */
export function attachRealtime(app: CoreApp, deps: RealtimeDeps): Realtime {
  const { ctx, config, owner } = deps;
  const connections = new Connections();
  const meter = deps.metrics === undefined ? null : new SocketMeter(deps.metrics, () => connections.counts());
  const limits: SocketLimits = { now: ctx.clock.monotonic(), maxBacklog: config.ws.maxBackpressureBytes, meter };
  const hub = new Hub(app, ctx.store, limits);
  const pendingSockets = new PendingSockets(ctx, owner, config.ws.maxUnauthenticatedPerIp, deps.log);
  const refusedSockets = new RefusedSockets(ctx, owner, config.ws.maxUnauthenticatedPerIp, app.lingerMs, deps.log);
  const rooms = new Rooms({ ...deps, hub });
  const services: Services = { ...deps, limits, hub, connections, pendingSockets, refusedSockets, rooms };
  const server = new RealtimeServer(app, services);
  for (const path of ['/api/v1/ws', '/api/v1/ws/']) app.ws(path, server.behavior());
  return server;
}

class RealtimeServer implements Realtime {
  readonly #app: CoreApp;
  readonly #services: Services;
  readonly #authenticator: SocketAuthenticator;
  readonly #heartbeat: Heartbeat;
  readonly #unfollowErasures: () => void;
  #closing = false;

  constructor(app: CoreApp, services: Services) {
    this.#app = app;
    this.#services = services;
    this.#authenticator = new SocketAuthenticator(services, new Dispatcher(services));
    this.#heartbeat = new Heartbeat(services);
    this.#unfollowErasures = followErasures(services);
  }

  behavior(): SocketBehavior<SocketData> {
    return {
      maxPayloadLength: NATIVE_MAX_MESSAGE_BYTES,
      maxBackpressure: this.#services.limits.maxBacklog * 2 + NATIVE_BACKLOG_MARGIN,
      closeOnBackpressureLimit: 1,
      idleTimeout: IDLE_SECONDS,
      sendPingsAutomatically: true,
      upgrade: upgradeHandler(this.#services, this.#app, () => this.#closing),
      open: (socket) => this.#guard(socket, () => this.#open(socket)),
      message: (socket, frame, isBinary) => this.#guard(socket, () => sessionOf(socket)?.receive(frame, isBinary)),
      ping: (socket) => this.#guard(socket, () => sessionOf(socket)?.pinged()),
      pong: (socket) => this.#guard(socket, () => sessionOf(socket)?.pinged()),
      drain: (socket) => this.#guard(socket, () => sessionOf(socket)?.writer.onDrain()),
      close: (socket, code) => {
        this.#services.limits.meter?.closed(code);
        this.#guard(null, () => this.#onClosed(socket.getUserData()));
      },
    };
  }

  connections(): number {
    return this.#services.pendingSockets.size + this.#services.connections.size;
  }

  tick(): void {
    this.#heartbeat.tick();
  }

  async close(spreadMs: number, answerMs: number): Promise<void> {
    this.#closing = true;
    const { hub, pendingSockets, connections, rooms } = this.#services;
    const writers = [...pendingSockets.all, ...connections.all()].map(({ writer }) => writer);
    const finished: Promise<void>[] = [];
    const batches = Math.max(1, Math.min(writers.length, Math.floor(spreadMs / CLOSE_BATCH_MS)));
    for (let batch = 0; batch < batches; batch++) {
      const [from, to] = [batch, batch + 1].map((n) => Math.floor((n * writers.length) / batches));
      // A pending socket may have become a connection since.
      for (const { session } of writers.slice(from, to))
        if (session !== null) finished.push(session.finish(RESTART.code, RESTART.reason));
      if (batch + 1 < batches) await delay(spreadMs / batches);
    }
    await withTimeout(answerMs, Promise.all(finished), () => {});
    for (const writer of writers) writer.close(RESTART.code, RESTART.reason);
    this.#heartbeat.stop();
    this.#unfollowErasures();
    hub.stop();
    rooms.stop();
  }

  #open(socket: Socket): void {
    const data = socket.getUserData();
    const { outcome } = data;
    if (outcome === null) return;
    // The outcome holds the claims of the user, which the socket need not keep.
    data.outcome = null;
    const writer = new SocketWriter(socket, this.#services.limits);
    if (this.#closing || outcome.kind === 'closing') writer.close(RESTART.code, RESTART.reason);
    else if (outcome.kind === 'refused') refuse(writer, outcome.error);
    else if (outcome.kind === 'authenticated') this.#authenticator.admit(writer, outcome.user, outcome.resume, null);
    else
      this.#await(
        new PendingSocket(
          writer,
          outcome.info,
          this.#services.ctx.clock.monotonic() + AUTH_DEADLINE_MS,
          this.#authenticator,
        ),
      );
  }

  #await(pending: PendingSocket): void {
    pending.writer.attachSession(pending);
    this.#services.pendingSockets.add(pending);
  }

  #onClosed({ session, refused, address }: SocketData): void {
    session?.ended();
    if (refused) this.#services.refusedSockets.add(address);
  }

  /** Runs a native handler. An exception must not reach the core; it closes the socket instead. */
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

/** The session of a socket; null on one that was refused. */
function sessionOf(socket: Socket): Session | null {
  return socket.getUserData().session;
}
