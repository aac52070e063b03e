import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type * as Ws from 'ws';
import type { Sendable, SocketBehavior, UpgradeContext } from '../core.ts';
import { NodeSocket, type SocketTopics } from './socket.ts';

/** An upgrade request whose response is pending. */
export interface PendingUpgrade extends UpgradeContext {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** The bytes that the client has sent after the request. */
  readonly bytes: Buffer;
  readonly behavior: SocketBehavior<unknown>;
}

/** How long a client may take to read what was sent before the close frame: as long as a silent socket lives. */
const CLOSE_TIMEOUT_MS = 60_000;
/**
 * How long a client may take to answer the close frame once it has read everything; the native core gives it as long.
 */
const ANSWER_CLOSE_MS = 5_000;
const CHECK_MS = 4_000;

/** The WebSockets of one server, and their topics. */
export class WebSockets implements SocketTopics {
  readonly #open = new Set<NodeSocket>();
  readonly #topics = new Map<string, Set<NodeSocket>>();
  readonly #servers = new Map<SocketBehavior<unknown>, Ws.WebSocketServer>();
  /** The headers of the upgrade that is being answered. */
  #headers: readonly string[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** How long a client may take to answer a close frame, in milliseconds. */
  readonly answerCloseMs: number;

  /** @param answerCloseMs see there */
  constructor(answerCloseMs = ANSWER_CLOSE_MS) {
    this.answerCloseMs = answerCloseMs;
  }

  /** Answers an upgrade request. `headers`: names and values in turn. `protocol`: '' for none. */
  upgrade(
    { request, socket, bytes, behavior }: PendingUpgrade,
    data: unknown,
    protocol: string,
    headers: readonly string[],
  ): void {
    this.#headers = protocol === '' ? headers : [...headers, 'Sec-WebSocket-Protocol', protocol];
    // The caller has chosen the protocol.
    delete request.headers['sec-websocket-protocol'];
    this.#serverOf(behavior).handleUpgrade(request, socket, bytes, (native) =>
      this.#opened(native, socket, behavior, data),
    );
    this.#headers = [];
  }

  publish(topic: string, message: Sendable, isBinary: boolean, from: NodeSocket | null = null): boolean {
    const sockets = this.#topics.get(topic);
    if (sockets === undefined) return false;
    for (const socket of sockets) if (socket !== from) socket.send(message, isBinary);
    return true;
  }

  subscribe(socket: NodeSocket, topic: string): boolean {
    const sockets = this.#topics.get(topic);
    if (sockets === undefined) this.#topics.set(topic, new Set([socket]));
    else sockets.add(socket);
    return true;
  }

  unsubscribe(socket: NodeSocket, topic: string): boolean {
    const sockets = this.#topics.get(topic);
    const removed = sockets?.delete(socket) === true;
    if (sockets?.size === 0) this.#topics.delete(topic);
    return removed;
  }

  /** Disconnects all at once. */
  closeAll(): void {
    for (const socket of this.#open) socket.disconnect();
  }

  #serverOf(behavior: SocketBehavior<unknown>): Ws.WebSocketServer {
    let server = this.#servers.get(behavior);
    if (server === undefined) {
      const options = {
        noServer: true,
        clientTracking: false,
        perMessageDeflate: false,
        maxPayload: behavior.maxPayloadLength ?? 16_384,
        closeTimeout: CLOSE_TIMEOUT_MS,
      };
      // Loaded here, because workers on the native core need not.
      const ws = createRequire(import.meta.url)('ws') as typeof Ws;
      server = new ws.WebSocketServer(options);
      server.on('headers', (lines) => {
        for (let i = 0; i < this.#headers.length; i += 2) lines.push(`${this.#headers[i]}: ${this.#headers[i + 1]}`);
      });
      this.#servers.set(behavior, server);
    }
    return server;
  }

  #opened(native: Ws.WebSocket, connection: Socket, behavior: SocketBehavior<unknown>, data: unknown): void {
    const socket = new NodeSocket(native, connection, behavior, data, this, this.answerCloseMs);
    this.#open.add(socket);
    native.once('close', () => {
      this.#open.delete(socket);
      if (this.#open.size > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    });
    this.#timer ??= setInterval(() => this.#checkSilence(performance.now()), CHECK_MS).unref();
    behavior.open?.(socket);
  }

  #checkSilence(now: number): void {
    for (const socket of this.#open) socket.checkSilence(now);
  }
}
