import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CoreResponse, Sendable } from '../core.ts';
import { HeadLines } from './head-lines.ts';
import { sendHeadError } from './head-errors.ts';
import { stopParsing } from './stop-parsing.ts';
import { Throughput } from './throughput.ts';

/** Callbacks from responses to their server. */
export interface ResponseHost {
  /** The response is complete, aborted or upgraded. `isLast`: no other request of the connection may be handled. */
  ended(isLast: boolean): void;
  /** Makes a WebSocket of the connection. */
  upgrade(data: unknown, protocol: string, headers: readonly string[]): void;
}

/** Bytes that are written at once of a body of known length. */
const WRITE_BYTES = 256 * 1024;
const NO_BYTES = new ArrayBuffer(0);

/** The response to one request, on Node's HTTP server. */
export class NodeResponse implements CoreResponse {
  /** Measures whether the client sends and takes fast enough. */
  readonly throughput: Throughput;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #host: ResponseHost;
  readonly #address: string;
  readonly #head = new HeadLines();
  /** Bytes of the body that were written. */
  #offset = 0;
  #isFinished = false;
  #onAborted: (() => void) | null = null;

  constructor(request: IncomingMessage, response: ServerResponse, host: ResponseHost) {
    this.#request = request;
    this.#response = response;
    this.#socket = request.socket;
    this.#host = host;
    this.#address = request.socket.remoteAddress ?? '';
    this.throughput = new Throughput(request, response);
    response.on('close', () => this.abort());
    response.on('error', () => this.abort());
    request.on('error', () => {});
  }

  /** Whether the response is complete, aborted or upgraded. */
  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Whether all of its request has arrived. */
  get received(): boolean {
    return this.#request.complete;
  }

  pause(): void {
    this.#request.pause();
  }

  resume(): void {
    this.#request.resume();
  }

  cork(work: () => void): this {
    work();
    if (this.#head.started && !this.#isFinished) {
      this.#sendHead();
      this.#response.flushHeaders();
    }
    return this;
  }

  writeStatus(status: string): this {
    this.#head.start(status);
    return this;
  }

  writeHeader(name: string, value: Sendable): this {
    const body = this.#head.add(name, typeof value === 'string' ? value : Buffer.from(value).toString());
    if (body === null) return this;
    this.#sendHead();
    if (body === '' || this.#request.method === 'HEAD') this.#response.flushHeaders();
    else this.#response.write(body);
    return this;
  }

  write(part: Sendable): boolean {
    this.#sendHead();
    return this.#response.write(part);
  }

  end(body: Sendable = '', closeConnection = false): this {
    const streams = this.#response.headersSent;
    const isLast = closeConnection || !this.#response.shouldKeepAlive;
    if (!streams) {
      if (isLast) this.#head.add('Connection', 'close');
      this.#head.add('Content-Length', String(Buffer.byteLength(body)));
      this.#sendHead();
    }
    this.#finish(isLast);
    if (streams && closeConnection) this.#response.once('finish', () => this.#socket.destroySoon());
    this.#response.end(body);
    return this;
  }

  endWithoutBody(): this {
    const isLast = this.#head.closes || !this.#response.shouldKeepAlive;
    if (isLast && !this.#head.closes) this.#head.add('Connection', 'close');
    this.#sendHead();
    this.#finish(isLast);
    this.#response.end();
    return this;
  }

  tryEnd(part: Uint8Array, size: number): [taken: boolean, complete: boolean] {
    const isLast = this.#head.closes || !this.#response.shouldKeepAlive;
    if (!this.#response.headersSent) {
      this.#head.add('Content-Length', String(size));
      if (isLast && !this.#head.closes) this.#head.add('Connection', 'close');
      this.#sendHead();
    }
    for (let from = 0; from < part.length;) {
      const piece = part.subarray(from, from + WRITE_BYTES);
      const taken = this.#response.write(piece);
      from += piece.length;
      this.#offset += piece.length;
      // At most one piece is buffered; the `onWritable` handler runs once it has been sent.
      if (!taken) return [false, false];
    }
    if (this.#offset < size) return [true, false];
    this.#finish(isLast);
    this.#response.end();
    return [true, true];
  }

  close(): this {
    stopParsing(this.#socket);
    this.#socket.destroy();
    this.abort();
    return this;
  }

  onWritable(handler: (offset: number) => boolean): this {
    this.#response.removeAllListeners('drain');
    this.#response.on('drain', () => this.#isFinished || handler(this.#offset));
    return this;
  }

  onAborted(handler: () => void): this {
    this.#onAborted = handler;
    return this;
  }

  onData(handler: (bytes: ArrayBuffer | Uint8Array, isLast: boolean) => void): this {
    const length = Number(this.#request.headers['content-length'] ?? Infinity);
    let received = 0;
    const deliver = (bytes: Uint8Array, isLast: boolean): void => {
      // As with the native core, bytes may arrive after the end of the response, but not after an abort.
      if (!this.#socket.destroyed) handler(bytes, isLast);
    };
    this.#request.on('data', (chunk: Buffer) => {
      received += chunk.length;
      this.throughput.receive(chunk.length);
      deliver(chunk, received >= length);
    });
    this.#request.on('end', () => {
      if (this.#request.rawTrailers.length > 0)
        this.refuse(400, 'Trailer is not supported: send the request without trailer fields');
      else if (received < length) deliver(new Uint8Array(0), true);
    });
    return this;
  }

  getRemoteAddress(): ArrayBuffer {
    return NO_BYTES;
  }

  getRemoteAddressAsText(): ArrayBuffer {
    const bytes = new ArrayBuffer(this.#address.length);
    Buffer.from(bytes).write(this.#address, 'latin1');
    return bytes;
  }

  upgrade<T>(data: T, _key: string, protocol: string): void {
    this.#isFinished = true;
    this.#response.detachSocket(this.#socket);
    this.#host.ended(true);
    this.#host.upgrade(data, protocol, this.#head.lines);
  }

  /**
   * Aborts the response and answers with a refusal, if none of the response has been sent. The connection is closed.
   */
  refuse(status: number, message: string): void {
    if (this.#response.headersSent) return void this.close();
    sendHeadError(this.#socket, { status, message });
    this.abort();
  }

  /** Marks the response as gone and calls the abort handler. Does nothing once the response is finished. */
  abort(): void {
    if (this.#isFinished) return;
    this.#finish(true);
    this.#onAborted?.();
  }

  #sendHead(): void {
    if (this.#response.headersSent) return;
    // Node would add `Connection: keep-alive`, which is the default.
    if (!this.#head.closes) this.#response.removeHeader('Connection');
    this.#response.writeHead(this.#head.status, this.#head.reason, this.#head.take());
  }

  #finish(isLast: boolean): void {
    this.#isFinished = true;
    this.#host.ended(isLast);
  }
}
