import type { WebSocket } from 'uWebSockets.js';
import { wireText } from '../../net/wire-text.ts';
import type { Connection } from '../session/connection.ts';
import type { PendingSocket } from '../handshake/pending-sockets.ts';
import type { UpgradeOutcome } from '../handshake/upgrade.ts';
import type { SocketMeter } from './socket-meter.ts';

/** What hangs on each native socket: first what the handshake found, from `open` on the one who talks. */
export interface SocketData {
  session: UpgradeOutcome | PendingSocket | Connection;
  /** As `Line.baseUrl`. */
  readonly baseUrl: string;
}
export type Socket = WebSocket<SocketData>;

/** What all lines of a worker share. */
export interface SocketLimits {
  /** `Clock.monotonic` as of the last turn of the heartbeat: exact enough to measure silence, and free. */
  now: number;
  /** Bytes that may wait for a slow client. */
  readonly maxBacklog: number;
  /** Null while nobody asks for measurements. */
  readonly meter: SocketMeter | null;
}

/** Close codes that are no refusal. */
export const RESTART = { code: 1012, reason: 'restart' } as const;
/** Backlog over the limit, or more missed than the log still holds while resuming. */
export const SLOW_CONSUMER = { code: 1013, reason: 'slow consumer' } as const;

/** Bytes waiting for a client at which a replay pauses. */
const HIGH_WATER = 256 * 1024;

/** Most bytes of one message that a client has asked for. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Shorter ones are not worth an exception. */
const SMALL_CHARS = 16 * 1024;

/** What `send` of the core answers when the whole message went out, and nothing waits. */
const SENT = 1;

/**
 * The sending half of one socket. It never throws: once the socket is closed, by either side, every call does
 * nothing (the core throws when a closed socket is touched).
 */
export class SocketWriter {
  #socket: Socket | null;
  #onDrained: (() => void) | null = null;
  readonly #limits: SocketLimits;
  /** The address of the server as this client knows it, without a slash at its end; '' when that is unknown. */
  readonly baseUrl: string;
  /** Bytes that may wait besides, because the client asked for them. */
  #asked = 0;
  /** When something was last sent to this socket alone, by `LineTerms.now`. */
  lastSentAt: number;

  constructor(socket: Socket, limits: SocketLimits) {
    this.#socket = socket;
    this.#limits = limits;
    this.baseUrl = socket.getUserData().baseUrl;
    this.lastSentAt = limits.now;
  }

  get isOpen(): boolean {
    return this.#socket !== null;
  }

  /** Whoever talks on the socket; null once it is closed. */
  get session(): SocketData['session'] | null {
    return this.#socket?.getUserData().session ?? null;
  }

  /** From now on the news of the socket go to `session`. */
  attachSession(session: PendingSocket | Connection): void {
    if (this.#socket !== null) this.#socket.getUserData().session = session;
  }

  /**
   * Sends a text frame, after everything that was published to the topics of this socket before.
   *
   * @param encoded `text` as `wireText` gives it, for callers that send one text to many sockets
   */
  send(text: string, encoded: string | Uint8Array = wireText(text)): void {
    if (this.#socket === null) return;
    this.lastSentAt = this.#limits.now;
    this.#limits.meter?.sent(text);
    if (this.#socket.send(encoded, false, false) !== SENT) this.checkBacklog();
  }

  /**
   * As `send`, of what the client asked for: it may be as long as `MAX_ASKED_BYTES`, and alone never makes the client count
   * as too slow. Wait for `ready` before making something long.
   */
  sendReply(text: string, encoded: string | Uint8Array = wireText(text)): void {
    if (text.length > SMALL_CHARS) this.#asked = this.backlog() + encoded.length;
    this.send(text, encoded);
  }

  /** Resolves when so little waits for the client that it can be sent more, or the socket has closed. */
  async ready(): Promise<void> {
    while (this.isOpen && !this.keepsUp) await this.drained();
  }

  /**
   * Publishes a text to all other sockets of a topic. Returns false when this one has closed: then nobody got it.
   *
   * @param encoded as `wireText` gives it
   */
  publish(topic: string, encoded: string | Uint8Array): boolean {
    if (this.#socket === null) return false;
    this.#socket.publish(topic, encoded, false, false);
    return true;
  }

  /**
   * Sends texts in one packet, as far as the client keeps up. Returns how many of them were sent: when not all, the caller
   * waits for `drained` and goes on. Never closes the socket as too slow.
   */
  sendAtItsPace(texts: readonly string[]): number {
    const socket = this.#socket;
    if (socket === null) return 0;
    this.lastSentAt = this.#limits.now;
    let sent = 0;
    socket.cork(() => {
      while (sent < texts.length && this.keepsUp) socket.send(wireText(texts[sent++] ?? ''), false, false);
    });
    if (this.#limits.meter !== null) for (const text of texts.slice(0, sent)) this.#limits.meter.sent(text);
    return sent;
  }

  /** Whether so little waits for the client that it can be sent more than what is live. */
  get keepsUp(): boolean {
    return this.backlog() < Math.min(HIGH_WATER, this.#limits.maxBacklog / 2);
  }

  /** Bytes that wait for the client. */
  backlog(): number {
    return this.#socket === null ? 0 : this.#socket.getBufferedAmount();
  }

  /**
   * Closes the socket with 1013 if more waits for it than is allowed. What waits goes out before the close frame, so a
   * client that reads again soon misses nothing and knows why. One that reads nothing for the core's ping timeout more is
   * cut off, and sees 1006.
   */
  checkBacklog(): void {
    const backlog = this.backlog();
    if (backlog <= this.#limits.maxBacklog) this.#asked = 0;
    if (backlog > this.#limits.maxBacklog + this.#asked) this.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
  }

  /** Resolves when some of the backlog has gone out, or the socket has closed. */
  drained(): Promise<void> {
    if (this.#socket === null) return Promise.resolve();
    const others = this.#onDrained;
    return new Promise((resolve) => {
      this.#onDrained = () => {
        others?.();
        resolve();
      };
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
    socket?.end(code, wireText(reason));
  }

  /** The core's news: some of the backlog went out. */
  onDrain(): void {
    const wake = this.#onDrained;
    this.#onDrained = null;
    wake?.();
  }

  /** The core's news: the socket has closed and must not be touched again. */
  ended(): void {
    this.#socket = null;
    this.onDrain();
  }
}
