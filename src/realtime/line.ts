import type { WebSocket } from 'uWebSockets.js';
import type { Connection } from './connection.ts';
import type { Guest } from './guests.ts';
import type { Arrival } from './handshake.ts';

/** What hangs on each native socket: first what the handshake found, from `open` on the one who talks. */
export interface SocketData {
  session: Arrival | Guest | Connection;
}
export type Socket = WebSocket<SocketData>;

/** What all lines of a worker share. */
export interface LineTerms {
  /** Milliseconds since the epoch as of the last turn of the heartbeat: exact enough for silence, and free. */
  now: number;
  /** Bytes that may wait for a slow client. */
  readonly maxBacklog: number;
}

/** Close codes that are no refusal (decisions §3). */
export const RESTART = { code: 1012, reason: 'restart' } as const;
/** Backlog over the limit, or more missed than the log still holds while resuming. */
export const SLOW_CONSUMER = { code: 1013, reason: 'slow consumer' } as const;

/** What `send` of the core answers when the whole message went out, and nothing waits. */
const SENT = 1;

/**
 * The sending half of one socket. It never throws: once the socket is closed, by either side, every call does
 * nothing (the core throws when a closed socket is touched).
 */
export class Line {
  #socket: Socket | null;
  #wake: (() => void) | null = null;
  readonly #terms: LineTerms;
  /** When something was last sent to this socket alone, by `LineTerms.now`. */
  lastSentAt: number;

  constructor(socket: Socket, terms: LineTerms) {
    this.#socket = socket;
    this.#terms = terms;
    this.lastSentAt = terms.now;
  }

  get isOpen(): boolean {
    return this.#socket !== null;
  }

  /** From now on the news of the socket go to `session`. */
  handTo(session: Guest | Connection): void {
    if (this.#socket !== null) this.#socket.getUserData().session = session;
  }

  /** Sends a text frame, after everything that was published to the topics of this socket before. */
  send(text: string): void {
    if (this.#socket === null) return;
    this.lastSentAt = this.#terms.now;
    if (this.#socket.send(text, false, false) !== SENT) this.checkBacklog();
  }

  /**
   * Sends texts in one packet, as far as fewer than `highWater` bytes wait. Returns how many of them were sent.
   * Doesn't close a slow socket: the caller waits for `drained` and goes on.
   */
  sendWhileDrained(texts: readonly string[], highWater: number): number {
    const socket = this.#socket;
    if (socket === null) return 0;
    this.lastSentAt = this.#terms.now;
    let sent = 0;
    socket.cork(() => {
      while (sent < texts.length && socket.getBufferedAmount() < highWater) socket.send(texts[sent++] ?? '', false, false);
    });
    return sent;
  }

  /** Bytes that wait for the client. */
  backlog(): number {
    return this.#socket === null ? 0 : this.#socket.getBufferedAmount();
  }

  /** Closes the socket with 1013 if more waits for it than is allowed. What waits goes out before the close frame. */
  checkBacklog(): void {
    if (this.backlog() > this.#terms.maxBacklog) this.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
  }

  /** Resolves when some of the backlog has gone out, or the socket has closed. One waiter at a time. */
  drained(): Promise<void> {
    if (this.#socket === null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  subscribe(topic: string): void {
    this.#socket?.subscribe(topic);
  }

  /** Messages published before still arrive. */
  unsubscribe(topic: string): void {
    this.#socket?.unsubscribe(topic);
  }

  /** Sends a close frame after everything else. The session is told before this returns. */
  close(code: number, reason: string): void {
    const socket = this.#socket;
    this.ended();
    socket?.end(code, reason);
  }

  /** The core's news: some of the backlog went out. */
  onDrain(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  /** The core's news: the socket has closed and must not be touched again. */
  ended(): void {
    this.#socket = null;
    this.onDrain();
  }
}
