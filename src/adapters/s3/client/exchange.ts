import { type Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { ConnectionFailure } from './failures.ts';
import type { HttpAnswer } from './http-answer.ts';

/** Bounds of one exchange, in milliseconds. */
export interface ExchangeTimeouts {
  /** Waiting for one of the connections to be free. */
  readonly queueMs: number;
  /** Name, TCP and TLS. */
  readonly connectMs: number;
  /** Without a byte in either direction, so also until the first byte of the answer. */
  readonly idleMs: number;
  /** All of it: for a peer that sends a byte now and then. */
  readonly totalMs: number;
}

/** A body that can be sent again. */
export interface Body {
  readonly length: number;
  /** The bytes from the beginning, in pieces. What it throws ends the exchange and is what that rejects with. */
  chunks(): AsyncIterable<Uint8Array>;
}

/** Where a request goes. */
export interface Endpoint {
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
}

/** One HTTP request. */
export interface HttpRequest {
  readonly endpoint: Endpoint;
  readonly agent: Agent;
  readonly method: string;
  /** With the query, encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body | undefined;
  /**
   * The largest body of a successful answer, in bytes: a larger one ends the exchange. An error may have 64 KiB more.
   */
  readonly maxBytes: number;
  readonly timeouts: ExchangeTimeouts;
  /** Ends the exchange. */
  readonly signal?: AbortSignal | undefined;
}

const ERROR_BYTES = 64 * 1024;

/**
 * Sends a request and resolves with the whole answer, whatever its status. Rejects with a `ConnectionFailure`, with the
 * reason of the signal, or as the body does. However it ends, nothing of it is left: the answer was read to its end or
 * the connection is destroyed.
 */
export function exchange(request: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => new Exchange(request, resolve, reject).start());
}

class Exchange {
  readonly #request: HttpRequest;
  readonly #resolve: (answer: HttpAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  #outgoing: ClientRequest | null = null;
  #isOver = false;

  constructor(request: HttpRequest, resolve: (answer: HttpAnswer) => void, reject: (error: unknown) => void) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    const { endpoint, agent, method, path, headers, body, timeouts, signal } = this.#request;
    if (signal?.aborted === true) return this.#fail(signal.reason);
    signal?.addEventListener('abort', this.#abort, { once: true });
    const length: Record<string, string> =
      body === undefined && method !== 'POST' && method !== 'PUT'
        ? {}
        : { 'content-length': String(body?.length ?? 0) };
    const outgoing = (endpoint.secure ? requestHttps : requestHttp)({
      agent,
      method,
      path,
      hostname: endpoint.hostname,
      port: endpoint.port,
      headers: { ...headers, ...length },
    });
    this.#outgoing = outgoing;
    const queued = this.#after(timeouts.queueMs, 'all connections are in use');
    this.#after(timeouts.totalMs, 'the exchange took too long');
    outgoing.once('socket', (socket) => {
      this.#clear(queued);
      this.#watchConnecting(socket);
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => this.#failConnection(error));
    outgoing.once('response', (incoming) => void this.#receive(incoming));
    if (body === undefined) outgoing.end();
    else void this.#send(outgoing, body);
  }

  #watchConnecting(socket: Socket): void {
    const { timeouts, endpoint } = this.#request;
    this.#outgoing?.setTimeout(timeouts.idleMs, () => this.#late('nothing came', timeouts.idleMs));
    if (!socket.connecting) return;
    const timer = this.#after(timeouts.connectMs, 'no connection');
    socket.once(endpoint.secure ? 'secureConnect' : 'connect', () => this.#clear(timer));
  }

  async #send(outgoing: ClientRequest, body: Body): Promise<void> {
    try {
      for await (const chunk of body.chunks()) {
        if (this.#isOver) return;
        if (!outgoing.write(chunk)) await drained(outgoing);
      }
      if (!this.#isOver) outgoing.end();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #receive(incoming: IncomingMessage): Promise<void> {
    const isError = (incoming.statusCode ?? 0) > 299;
    const maxBytes = this.#request.maxBytes + (isError ? ERROR_BYTES : 0);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > maxBytes) throw new ConnectionFailure(`the answer has more than ${maxBytes} bytes`);
        chunks.push(chunk);
      }
    } catch (error) {
      return this.#failConnection(error as Error);
    }
    if (!incoming.complete) return this.#failConnection(new ConnectionFailure('the answer was cut off'));
    // The rest of the body would be read as the next request of the connection.
    if (this.#outgoing?.writableFinished !== true) this.#outgoing?.destroy();
    this.#end();
    this.#resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks, size) });
  }

  readonly #abort = (): void => this.#fail(this.#request.signal?.reason);

  #after(ms: number, what: string): NodeJS.Timeout {
    const timer = setTimeout(() => this.#late(what, ms), ms);
    this.#timers.add(timer);
    return timer;
  }

  #clear(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }

  #late(what: string, ms: number): void {
    this.#fail(new ConnectionFailure(`${what} within ${Math.round(ms / 100) / 10} s`, { code: 'ETIMEDOUT' }));
  }

  #failConnection(error: Error): void {
    if (error instanceof ConnectionFailure) return this.#fail(error);
    const { code = '', message } = error as NodeJS.ErrnoException;
    const wasIdle = this.#outgoing?.reusedSocket === true && (code === 'ECONNRESET' || code === 'EPIPE');
    this.#fail(new ConnectionFailure(message === '' ? code : message, { code, wasIdle, cause: error }));
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.#outgoing?.destroy();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#outgoing?.setTimeout(0);
    this.#request.signal?.removeEventListener('abort', this.#abort);
  }
}

/** Resolves when the request takes more bytes, or is over. */
function drained(outgoing: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    if (outgoing.destroyed) return resolve();
    outgoing.once('drain', done).once('close', done);
  });
}
