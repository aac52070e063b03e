import { setTimeout as delay } from 'node:timers/promises';
import type { TemplatedApp, WebSocketBehavior } from 'uWebSockets.js';
import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { Metrics } from '../lib/metrics.ts';
import type { Logger } from '../log.ts';
import type { Bus } from '../ports/bus.ts';
import { Admission } from './admission.ts';
import { Anchor } from './anchor.ts';
import { Connection } from './connection.ts';
import { MessageDesk } from './desk.ts';
import { followErasures } from './erasures.ts';
import { AUTH_DEADLINE_MS, Guest, Guests } from './guests.ts';
import { upgradeHandler } from './handshake.ts';
import { Heartbeat } from './heartbeat.ts';
import { Hub } from './hub.ts';
import { Line, type LineTerms, MAX_ASKED_BYTES, RESTART, type Socket, type SocketData } from './line.ts';
import { MAX_MESSAGE_BYTES, refuse } from './protocol.ts';
import { Rooms } from './rooms.ts';
import type { Services } from './services.ts';
import { SocketMeter } from './socket-meter.ts';

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
const CORE_BACKLOG_MARGIN = MAX_ASKED_BYTES + 1024 * 1024;
const CLOSE_TURN_MS = 20;

/** Attaches the WebSocket of the API (`/api/v1/ws`, docs/realtime.md) to a server that doesn't listen yet. */
export function attachRealtime(app: TemplatedApp, deps: RealtimeDeps): Realtime {
  const { ctx, config, owner } = deps;
  const meter = deps.metrics === undefined ? null : new SocketMeter(deps.metrics, () => hub.feeds.values());
  const terms: LineTerms = { now: ctx.clock.monotonic(), maxBacklog: config.ws.maxBackpressureBytes, meter };
  const hub: Hub = new Hub(app, ctx.store, terms);
  const guests = new Guests(ctx, owner, config.ws.maxUnauthenticatedPerIp);
  const rooms = new Rooms({ ...deps, hub });
  const services: Services = { ...deps, terms, hub, guests, rooms };
  const server = new RealtimeServer(services);
  for (const path of ['/api/v1/ws', '/api/v1/ws/']) app.ws(path, server.behavior());
  return server;
}

class RealtimeServer implements Realtime {
  readonly #services: Services;
  readonly #admission: Admission;
  readonly #heartbeat: Heartbeat;
  readonly #anchor = new Anchor();
  readonly #stopErasures: () => void;
  #closing = false;

  constructor(services: Services) {
    this.#services = services;
    this.#admission = new Admission(services, new MessageDesk(services));
    this.#heartbeat = new Heartbeat(services);
    this.#stopErasures = followErasures(services);
  }

  behavior(): WebSocketBehavior<SocketData> {
    return {
      maxPayloadLength: CORE_MAX_MESSAGE_BYTES,
      maxBackpressure: this.#services.terms.maxBacklog * 2 + CORE_BACKLOG_MARGIN,
      closeOnBackpressureLimit: 1,
      idleTimeout: IDLE_SECONDS,
      sendPingsAutomatically: true,
      upgrade: upgradeHandler(this.#services, this.#anchor, () => this.#closing),
      open: (socket) => this.#guard(socket, () => this.#open(socket)),
      message: (socket, frame, isBinary) => this.#guard(socket, () => talker(socket)?.receive(frame, isBinary)),
      ping: (socket) => this.#guard(socket, () => talker(socket)?.pinged()),
      pong: (socket) => this.#guard(socket, () => talker(socket)?.pinged()),
      drain: (socket) => this.#guard(socket, () => talker(socket)?.line.onDrain()),
      close: (socket, code) => {
        this.#services.terms.meter?.closed(code);
        this.#guard(null, () => talker(socket)?.ended());
      },
    };
  }

  connections(): number {
    let count = this.#services.guests.size;
    for (const feed of this.#services.hub.feeds.values()) count += feed.members.size;
    return count;
  }

  turn(): void {
    this.#heartbeat.turn();
  }

  async close(spreadMs: number, patienceMs: number): Promise<void> {
    this.#closing = true;
    const { hub, guests, rooms } = this.#services;
    const lines = [...guests.all, ...[...hub.feeds.values()].flatMap((feed) => [...feed.members])].map(({ line }) => line);
    const finished: Promise<void>[] = [];
    const turns = Math.max(1, Math.min(lines.length, Math.floor(spreadMs / CLOSE_TURN_MS)));
    for (let turn = 0; turn < turns; turn++) {
      const [from, to] = [turn, turn + 1].map((n) => Math.floor((n * lines.length) / turns));
      for (const line of lines.slice(from, to)) finished.push(this.#finish(line));
      if (turn + 1 < turns) await delay(spreadMs / turns);
    }
    const patience = new AbortController();
    await Promise.race([Promise.all(finished), delay(patienceMs, undefined, { signal: patience.signal }).catch(() => {})]);
    patience.abort();
    for (const line of lines) line.close(RESTART.code, RESTART.reason);
    this.#heartbeat.stop();
    this.#stopErasures();
    hub.stop();
    rooms.stop();
    await this.#anchor.close();
  }

  async #finish(line: Line): Promise<void> {
    const { session } = line;
    if (session instanceof Connection) await session.finish(RESTART.code, RESTART.reason);
    else line.close(RESTART.code, RESTART.reason);
  }

  #open(socket: Socket): void {
    const { session: arrival } = socket.getUserData();
    if (arrival instanceof Guest || arrival instanceof Connection) return;
    const line = new Line(socket, this.#services.terms);
    if (this.#closing || arrival.kind === 'late') line.close(RESTART.code, RESTART.reason);
    else if (arrival.kind === 'refused') refuse(line, arrival.error);
    else if (arrival.kind === 'known') this.#admission.admit(line, arrival.user, arrival.resume, null);
    else this.#receive(new Guest(line, arrival.pass, this.#services.ctx.clock.monotonic() + AUTH_DEADLINE_MS, this.#admission));
  }

  #receive(guest: Guest): void {
    guest.line.handTo(guest);
    this.#services.guests.enter(guest);
  }

  /** A throw must not reach the core. It closes the socket it happened on. */
  #guard(socket: Socket | null, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#services.log.error({ err: error }, 'a WebSocket handler failed');
      const line = socket === null ? undefined : talker(socket)?.line;
      line?.close(4500, 'internal');
    }
  }
}

/** Who talks on a socket; nobody on one that was refused. */
function talker(socket: Socket): Guest | Connection | null {
  const { session } = socket.getUserData();
  return session instanceof Guest || session instanceof Connection ? session : null;
}
