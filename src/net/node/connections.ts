import type { Socket } from 'node:net';
import { sendHeadError, slowHead } from './head-errors.ts';
import type { NodeResponse } from './response.ts';
import { STALLED_MS } from './throughput.ts';

/**
 * How long a connection may wait for the next complete head, from its beginning or from the end of the last response.
 * The check adds up to `CHECK_MS`.
 */
const IDLE_MS = 9_500;
const CHECK_MS = 500;
/** How long a client may take to read the last response of its connection. */
const CLOSING_MS = 2_000;

/** One connection of HTTP. */
export interface Connection {
  readonly socket: Socket;
  /** The response that is not complete; null between requests. */
  active: NodeResponse | null;
  /** The response before, while the rest of its request's body arrives. */
  unread: NodeResponse | null;
  /** Whether its last response is complete: nothing that follows is handled. */
  closing: boolean;
  /** Since when it waits for a request, in monotonic milliseconds. */
  idleSince: number;
  /** `socket.bytesRead` at that time. */
  readWhenIdle: number;
  /** Bytes that waited for the client at the last check. */
  waiting: number;
}

/**
 * The connections of one server that are not WebSockets. It closes those that are idle, whose head or body arrives too
 * slowly, and whose client takes nothing of its response.
 */
export class Connections {
  readonly #bySocket = new Map<Socket, Connection>();
  #timer: NodeJS.Timeout | null = null;
  #checkedAt = 0;
  #now = 1;

  /**
   * Monotonic milliseconds, of which a pause of the event loop counts as `CHECK_MS` at most: what clients sent
   * meanwhile is read only after the check, so their silence proves nothing.
   */
  get now(): number {
    return this.#now;
  }

  /** Adds a connection, until its socket closes. */
  add(socket: Socket): void {
    if (this.#bySocket.has(socket)) return;
    const connection: Connection = {
      socket,
      active: null,
      unread: null,
      closing: false,
      idleSince: this.#now,
      readWhenIdle: socket.bytesRead,
      waiting: 0,
    };
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.remove(socket));
    this.#timer ??= setInterval(() => this.#tick(), CHECK_MS).unref();
  }

  /** The connection of a socket; undefined for one that has closed or has become a WebSocket. */
  get(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  /** Forgets a connection. */
  remove(socket: Socket): void {
    this.#bySocket.delete(socket);
    if (this.#bySocket.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Closes all at once. */
  closeAll(): void {
    for (const { socket, active } of [...this.#bySocket.values()]) {
      socket.destroy();
      active?.abort();
    }
  }

  #tick(): void {
    const now = performance.now();
    this.#now += Math.min(now - this.#checkedAt, CHECK_MS);
    this.#checkedAt = now;
    this.#check(this.#now);
  }

  #check(now: number): void {
    for (const connection of this.#bySocket.values()) {
      if (connection.active !== null) {
        if (connection.active.throughput.isTooSlow(now)) connection.active.close();
      } else if (connection.unread !== null && !connection.closing)
        this.#checkUnread(connection, connection.unread, now);
      else this.#checkIdle(connection, now);
    }
  }

  /** A client may send the rest of a body after its response, as slowly as before it. */
  #checkUnread(connection: Connection, unread: NodeResponse, now: number): void {
    const { socket } = connection;
    if (unread.throughput.isTooSlow(now)) return void socket.destroy();
    if (!unread.received) return;
    connection.unread = null;
    if (socket.bytesRead === connection.readWhenIdle) return;
    connection.idleSince = now;
    connection.readWhenIdle = socket.bytesRead;
  }

  #checkIdle(connection: Connection, now: number): void {
    const { socket, waiting, closing } = connection;
    connection.waiting = socket.writableLength;
    if (connection.waiting > 0 && connection.waiting < waiting) connection.idleSince = now;
    const idleMs = now - connection.idleSince;
    if (connection.waiting > 0) {
      if (idleMs > STALLED_MS) socket.destroy();
    } else if (closing) {
      if (idleMs > CLOSING_MS) socket.destroy();
    } else if (idleMs > IDLE_MS) {
      connection.closing = true;
      if (socket.bytesRead > connection.readWhenIdle) sendHeadError(socket, slowHead);
      else socket.destroy();
    }
  }
}
