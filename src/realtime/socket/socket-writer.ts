import type { CoreSocket } from '../../net/core.ts';
import { wireText } from '../../net/wire-text.ts';
import type { UpgradeOutcome } from '../handshake/upgrade-outcome.ts';
import type { SocketMeter } from './socket-meter.ts';

/** Receives what arrives on a socket. */
export interface Session {
  readonly writer: SocketWriter;
  /** Handles one frame. Never throws. */
  receive(frame: ArrayBuffer, isBinary: boolean): void;
  /** Counts a ping or pong frame of the protocol, which the core answers itself. Never throws. */
  pinged(): void;
  /** Releases everything that belongs to the socket, which has closed. Called once. */
  ended(): void;
  /**
   * Ignores further messages and closes the socket once the messages in progress are answered. Resolves when it is
   * closed.
   */
  finish(code: number, reason: string): Promise<void>;
}

/** The user data of each native socket. */
export interface SocketData {
  /** Result of the upgrade; null once `open` has acted on it. */
  outcome: UpgradeOutcome | null;
  /** Null until `open`, and on a socket that was refused. */
  session: Session | null;
  /** Whether the server has closed the socket with the code of a refusal (4000 and above). */
  refused: boolean;
  /** Address of the client, as returned by `normaliseAddress`. */
  readonly address: string;
  /** See `SocketWriter.baseUrl`. */
  readonly baseUrl: string;
}
/** A native socket. */
export type Socket = CoreSocket<SocketData>;

/** Limits and state that all sockets of a worker share. */
export interface SocketLimits {
  /** `Clock.monotonic` as of the last tick of the heartbeat: exact enough to measure silence, and free to read. */
  now: number;
  /** Bytes that may wait for a slow client. */
  readonly maxBacklog: number;
  /** Null while metrics are disabled. */
  readonly meter: SocketMeter | null;
}

/** Close code of a restart, which is not a refusal. */
export const RESTART = { code: 1012, reason: 'restart' } as const;
/** Close code for a backlog over the limit, and for a resuming client whose missed events have left the log. */
export const SLOW_CONSUMER = { code: 1013, reason: 'slow consumer' } as const;

/** The least close code of a refusal. */
const REFUSAL = 4000;

/** A text frame, ready to be sent to many sockets. */
export interface TextFrame {
  readonly text: string;
  /** `wireText(text)` */
  readonly encoded: string | Uint8Array;
}

/** Backlog in bytes at which a replay pauses. */
const HIGH_WATER = 256 * 1024;

/** Largest reply to a request of a client, in bytes. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Replies up to this many characters count towards the backlog limit like any other frame. */
const SMALL_REPLY_CHARS = 16 * 1024;

/** Result of the native `send` when the whole message was sent and nothing waits. */
const SENT = 1;

/**
 * The sending half of one socket. It never throws: once either side has closed the socket, every call does nothing
 * (the native core throws when a closed socket is used).
 */
export class SocketWriter {
  #socket: Socket | null;
  #onDrained: (() => void) | null = null;
  readonly #limits: SocketLimits;
  /** The address at which this client reaches the server, without a trailing slash; '' if it is unknown. */
  readonly baseUrl: string;
  /** Bytes that may wait in addition to the limit, because they are replies to the client. */
  #replyAllowance = 0;
  /** Time of the last frame that was sent to this socket alone, by `SocketLimits.now`. */
  lastSentAt: number;

  constructor(socket: Socket, limits: SocketLimits) {
    this.#socket = socket;
    this.#limits = limits;
    this.baseUrl = socket.getUserData().baseUrl;
    this.lastSentAt = limits.now;
  }

  /** Whether neither side has closed the socket. */
  get isOpen(): boolean {
    return this.#socket !== null;
  }

  /** The session of the socket; null before `attachSession` and once the socket is closed. */
  get session(): Session | null {
    return this.#socket?.getUserData().session ?? null;
  }

  /** Makes `session` the receiver of everything that arrives on the socket. */
  attachSession(session: Session): void {
    if (this.#socket !== null) this.#socket.getUserData().session = session;
  }

  /**
   * Sends a text frame, after everything that was published to the topics of this socket before.
   *
   * @param encoded `wireText(text)`, for callers that send one text to many sockets
   */
  send(text: string, encoded: string | Uint8Array = wireText(text)): void {
    if (this.#socket === null) return;
    this.lastSentAt = this.#limits.now;
    this.#limits.meter?.sent(text);
    if (this.#socket.send(encoded, false, false) !== SENT) this.checkBacklog();
  }

  /** Like `send` for each frame, in one packet if they fit. */
  sendTogether(frames: readonly TextFrame[]): void {
    const [first] = frames;
    if (frames.length < 2) {
      if (first !== undefined) this.send(first.text, first.encoded);
      return;
    }
    this.#socket?.cork(() => {
      for (const { text, encoded } of frames) this.send(text, encoded);
    });
    // Only now it is known how much did not fit into the packet.
    this.checkBacklog();
  }

  /**
   * Like `send`, for a reply to the client: it may be up to `MAX_REPLY_BYTES` long, and alone never makes the client
   * count as a slow consumer. Await `ready` before building a long reply.
   */
  sendReply(text: string, encoded: string | Uint8Array = wireText(text)): void {
    if (text.length > SMALL_REPLY_CHARS) this.#replyAllowance = this.backlog() + encoded.length;
    this.send(text, encoded);
  }

  /** Resolves once the backlog is small enough for another reply, or the socket has closed. */
  async ready(): Promise<void> {
    while (this.isOpen && !this.keepsUp) await this.drained();
  }

  /**
   * Publishes a text to all other sockets of a topic. Returns false if this socket has closed; then nothing was
   * published.
   *
   * @param encoded the result of `wireText`
   */
  publish(topic: string, encoded: string | Uint8Array): boolean {
    if (this.#socket === null) return false;
    this.#socket.publish(topic, encoded, false, false);
    return true;
  }

  /**
   * Sends texts in one packet until the backlog is too large (see `keepsUp`). Returns how many were sent; if not all,
   * the caller awaits `drained` and continues with the rest. Never closes the socket as a slow consumer.
   */
  sendUntilFull(texts: readonly string[]): number {
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

  /** Whether the backlog is small enough to send more than live events. */
  get keepsUp(): boolean {
    return this.backlog() < Math.min(HIGH_WATER, this.#limits.maxBacklog / 2);
  }

  /** Bytes that wait for the client. */
  backlog(): number {
    return this.#socket === null ? 0 : this.#socket.getBufferedAmount();
  }

  /**
   * Closes the socket with 1013 if its backlog is over the limit. The backlog is sent before the close frame, so a
   * client that soon reads again misses nothing and receives the close code. A client that reads nothing until the ping
   * timeout of the core is disconnected, and sees 1006.
   */
  checkBacklog(): void {
    const backlog = this.backlog();
    if (backlog <= this.#limits.maxBacklog) this.#replyAllowance = 0;
    if (backlog > this.#limits.maxBacklog + this.#replyAllowance) this.close(SLOW_CONSUMER.code, SLOW_CONSUMER.reason);
  }

  /** Resolves once some of the backlog has been sent, or the socket has closed. */
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

  /** Lets the socket receive what is published to a topic. */
  subscribe(topic: string): void {
    this.#socket?.subscribe(topic);
  }

  /** Messages published before this call still arrive. */
  unsubscribe(topic: string): void {
    this.#socket?.unsubscribe(topic);
  }

  /** Sends a close frame after everything else. `Session.ended` is called before this returns. */
  close(code: number, reason: string): void {
    const socket = this.#socket;
    this.ended();
    if (socket === null) return;
    if (code >= REFUSAL) socket.getUserData().refused = true;
    socket.end(code, wireText(reason));
  }

  /** Called by the server when some of the backlog has been sent. */
  onDrain(): void {
    const notify = this.#onDrained;
    this.#onDrained = null;
    notify?.();
  }

  /** Called when the socket has closed and must not be used again. */
  ended(): void {
    this.#socket = null;
    this.onDrain();
  }
}
