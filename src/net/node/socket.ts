import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { CoreSocket, Sendable, SocketBehavior } from '../core.ts';

const SENT = 1;
const WAITS = 0;
const DROPPED = 2;
/** The close code of a connection that ended without a close frame. */
const ABNORMAL = 1006;

/** State that the sockets of a server share. */
export interface SocketTopics {
  /** Lets a socket receive what is published to a topic. */
  subscribe(socket: NodeSocket, topic: string): boolean;
  /** Ends a subscription. Returns whether there was one. */
  unsubscribe(socket: NodeSocket, topic: string): boolean;
  /** Publishes to all sockets of a topic except `from`. Returns whether the topic has sockets. */
  publish(topic: string, message: Sendable, isBinary: boolean, from?: NodeSocket | null): boolean;
}

/** A WebSocket of `ws`. */
export class NodeSocket implements CoreSocket<unknown> {
  readonly #native: WebSocket;
  readonly #connection: Socket;
  readonly #behavior: SocketBehavior<unknown>;
  readonly #data: unknown;
  readonly #sockets: SocketTopics;
  readonly #topics = new Set<string>();
  readonly #maxBackpressure: number;
  readonly #answerCloseMs: number;
  #open = true;
  /** Whether something waits for the client, so that `drain` is to be called. */
  #waits = false;
  #heardAt = performance.now();
  #answerTimer: NodeJS.Timeout | undefined;
  #pingedAt = 0;
  readonly #written = (): void => this.#onWritten();

  constructor(
    native: WebSocket,
    connection: Socket,
    behavior: SocketBehavior<unknown>,
    data: unknown,
    sockets: SocketTopics,
    answerCloseMs: number,
  ) {
    this.#native = native;
    this.#connection = connection;
    this.#behavior = behavior;
    this.#data = data;
    this.#sockets = sockets;
    this.#answerCloseMs = answerCloseMs;
    this.#maxBackpressure = behavior.maxBackpressure ?? 64 * 1024;
    native.binaryType = 'arraybuffer';
    native.on('message', (message, isBinary) =>
      this.#receive(() => behavior.message?.(this, message as ArrayBuffer, isBinary)),
    );
    native.on('ping', () => this.#receive(() => behavior.ping?.(this)));
    native.on('pong', () => this.#receive(() => behavior.pong?.(this)));
    native.on('close', (code) => {
      clearTimeout(this.#answerTimer);
      this.#closed(code);
    });
    // Of a frame that is not valid. `ws` closes the socket with a code that says why.
    native.on('error', () => {});
  }

  send(message: Sendable, isBinary = false): number {
    if (!this.#open) return DROPPED;
    const bytes = typeof message === 'string' ? Buffer.byteLength(message) : message.byteLength;
    if (this.#native.bufferedAmount + bytes > this.#maxBackpressure) {
      if (this.#behavior.closeOnBackpressureLimit === 1) this.disconnect();
      return DROPPED;
    }
    this.#native.send(message, { binary: isBinary, compress: false }, this.#written);
    if (this.#native.bufferedAmount === 0) return SENT;
    this.#waits = true;
    return WAITS;
  }

  getBufferedAmount(): number {
    return this.#native.bufferedAmount;
  }

  end(code?: number, reason?: Sendable): void {
    if (!this.#open) return;
    this.#native.close(code, reason === undefined ? undefined : Buffer.from(reason));
    this.#closed(code ?? ABNORMAL);
    this.#awaitAnswer();
  }

  subscribe(topic: string): boolean {
    if (!this.#open) return false;
    this.#topics.add(topic);
    return this.#sockets.subscribe(this, topic);
  }

  unsubscribe(topic: string): boolean {
    this.#topics.delete(topic);
    return this.#sockets.unsubscribe(this, topic);
  }

  publish(topic: string, message: Sendable, isBinary = false): boolean {
    return this.#sockets.publish(topic, message, isBinary, this);
  }

  cork(work: () => void): this {
    this.#connection.cork();
    try {
      work();
    } finally {
      this.#connection.uncork();
    }
    return this;
  }

  getUserData(): unknown {
    return this.#data;
  }

  /** Closes the connection without a close frame. */
  disconnect(): void {
    this.#native.terminate();
    this.#closed(ABNORMAL);
  }

  /** Disconnects a peer that has been silent for too long, and sends a ping before. Called every few seconds. */
  checkSilence(now: number): void {
    const { idleTimeout = 120, sendPingsAutomatically } = this.#behavior;
    const silentMs = now - this.#heardAt;
    if (idleTimeout === 0 || !this.#open) return;
    if (silentMs > idleTimeout * 1_000) this.disconnect();
    else if (sendPingsAutomatically === true && silentMs > idleTimeout * 500 && this.#pingedAt < this.#heardAt) {
      this.#pingedAt = now;
      this.#native.ping();
    }
  }

  /** Disconnects a client that ignores the close frame, once it has read everything. */
  #awaitAnswer(): void {
    this.#answerTimer = setTimeout(() => {
      if (this.#native.bufferedAmount === 0) this.#native.terminate();
      else this.#awaitAnswer();
    }, this.#answerCloseMs).unref();
  }

  #receive(handle: () => void): void {
    this.#heardAt = performance.now();
    if (this.#open) handle();
  }

  #onWritten(): void {
    if (!this.#waits || !this.#open) return;
    this.#waits = this.#native.bufferedAmount > 0;
    this.#behavior.drain?.(this);
  }

  #closed(code: number): void {
    if (!this.#open) return;
    this.#open = false;
    for (const topic of this.#topics) this.#sockets.unsubscribe(this, topic);
    this.#topics.clear();
    this.#behavior.close?.(this, code);
  }
}
