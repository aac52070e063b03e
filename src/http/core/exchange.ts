import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CoreRequest, CoreResponse } from '../../net/core.ts';
import { RequestHead } from '../../net/request-head.ts';
import { isRequestId, newRequestId } from '../../net/request-id.ts';
import type { Header } from '../../net/response-headers.ts';
import type { BodySource } from './body-source.ts';
import type { BodyStream } from './body-stream.ts';
import type { NoBody } from './body-collector.ts';
import { RequestBody } from './request-body.ts';
import type { RequestLoad } from './request-load.ts';
import { ResponseWriter } from './response-writer.ts';

/** Options that all exchanges of a server share. */
export interface ExchangeOptions {
  /** Whether the server is draining: each response then is the last on its connection. */
  readonly draining: () => boolean;
  /** Called once per exchange, when the whole response is handed over or the client is gone. */
  readonly finished: (exchange: Exchange) => void;
  /** Counts the requests and refusals of the process. */
  readonly load: RequestLoad;
  /** Refuses a request whose body comes in too many chunks, if it is not answered yet. */
  readonly refuseChunks: (exchange: Exchange) => void;
}

/**
 * The core skips an unread rest of a body up to this size and serves further requests; beyond it, the connection is
 * closed.
 */
const MAX_SKIPPED_BYTES = 1024 * 1024;
/** The most that is read and dropped of a body after its response, before the connection is closed. */
const MAX_LINGER_BYTES = 64 * 1024 * 1024;
/** Bytes per read of a source, and the most that is buffered of it for a slow client. */
const SOURCE_READ_BYTES = 256 * 1024;

/**
 * One request and its response. It owns the request and response of the core; nothing else touches them. Once
 * the client is gone or has the whole response, every call does nothing.
 */
export class Exchange {
  readonly head: RequestHead;
  /**
   * Identifies the request in logs and in `X-Request-Id`: the client's id if it is well-formed, otherwise a new one.
   */
  readonly id: string;
  /** Name of the route that serves the request, for log and metrics; '' for none. */
  route = '';
  /** `performance.now()` when the request came in. */
  readonly startedAt = performance.now();
  readonly #options: ExchangeOptions;
  readonly #writer: ResponseWriter;
  readonly #body: RequestBody;
  /** Whether the connection is closed after the response, because its client ignores refusals. */
  #closes = false;

  /**
   * Must be constructed, and `receiveBody` or `streamBody` called if the body is needed, before the native handler
   * returns.
   */
  constructor(response: CoreResponse, request: CoreRequest, options: ExchangeOptions) {
    this.#options = options;
    options.load.add();
    this.#writer = new ResponseWriter(response, () => this.#options.finished(this));
    response.onAborted(() => this.#abort());
    this.head = new RequestHead(request);
    this.#writer.keepsAlive = !this.head.connectionClose;
    this.#body = new RequestBody(this.#writer, this.head, (due) => this.#tooManyChunks(due));
    if (this.#body.unread > 0) response.onData((data, isLast) => this.#onData(data, isLast));
    this.id = isRequestId(this.head.requestId) ? this.head.requestId : newRequestId();
  }

  /** The status of the response; 0 before there is one. */
  get status(): number {
    return this.#writer.status;
  }

  /** Whether the client is gone or has the whole response. */
  get isFinished(): boolean {
    return !this.#writer.isOpen;
  }

  /** The other end of the connection, as `remoteAddress` returns it; '' once the exchange is finished. */
  get peer(): string {
    return this.isFinished ? '' : this.#writer.peer;
  }

  /** Whether more of the body may arrive. */
  get hasUnreadBody(): boolean {
    return this.#body.unread > 0;
  }

  /** Bytes of the body that are buffered and not read yet. */
  get bufferedBytes(): number {
    return this.#body.bufferedBytes;
  }

  /**
   * Reads the body as a whole. Of a body larger than `limit` bytes, nothing is kept.
   *
   * @param limit null if it depends on the actor: the promise then waits for `admitBody`
   * @returns a promise that never rejects
   */
  receiveBody(limit: number | null): Promise<Buffer | NoBody> {
    return this.#body.collect(limit);
  }

  /**
   * Reads the body as a stream of any length. The first call must be made before the native handler returns; later
   * calls return the same stream.
   */
  streamBody(): BodyStream {
    return this.#body.stream();
  }

  /**
   * Admits a large body. Until then, `UNADMITTED_BYTES` and one read of the core are taken of it at most.
   *
   * @param limit the largest body in bytes, if `receiveBody` was given null
   */
  admitBody(limit: number | null = null): void {
    this.#body.admit(limit);
  }

  /** Closes the connection without a response. */
  drop(): void {
    if (!this.isFinished) this.#writer.close();
  }

  /**
   * Sends a whole response; to HEAD, without its body. What is buffered of the request's body is freed. The rest is
   * read and dropped, so that a client that sends its whole body before it reads still receives the response. If many
   * requests came in this turn of the event loop, or the response is the last on its connection, it is sent after the
   * turn.
   */
  send(status: number, headers: readonly Header[], body: string | Uint8Array): void {
    if (this.isFinished) return;
    if (status === 429 && this.#options.load.refused(this.peer)) this.#closes = true;
    // The core forgets that it is to close a connection as soon as it parses another request that came with this one.
    if (this.#closes || this.#options.load.isCrowded) setImmediate(() => this.#send(status, headers, body));
    else this.#send(status, headers, body);
  }

  #send(status: number, headers: readonly Header[], body: string | Uint8Array): void {
    if (this.isFinished) return;
    this.#writer.status = status;
    const hasBody = status !== 204 && status !== 304;
    if (this.#mustLinger() && typeof body === 'string') {
      this.#writer.sendAndLinger(headers, hasBody && this.head.method !== 'HEAD' ? body : null);
      // The core must not be made to close a connection while it parses what it has read.
      this.#body.discard(MAX_LINGER_BYTES, () => setImmediate(() => this.#writer.endLingering()));
      return;
    }
    this.#body.discard();
    if (!hasBody) this.#writer.sendHead(headers, null, this.#isLast());
    else if (this.head.method === 'HEAD') this.#writer.sendHead(headers, Buffer.byteLength(body), this.#isLast());
    else this.#writer.sendWhole(headers, body, this.#isLast());
  }

  /**
   * Sends a response whose body is read from a source, no faster than the client takes it; to HEAD, nothing is read.
   * Resolves once all is handed over or the exchange is finished. Rejects if the source fails; if the response has
   * started by then, the connection is closed.
   */
  async sendSource(status: number, headers: readonly Header[], source: BodySource): Promise<void> {
    if (this.#options.load.isCrowded) await nextTurn();
    if (this.isFinished) return;
    this.#body.discard();
    this.#writer.status = status;
    if (this.head.method === 'HEAD') return this.#writer.sendHead(headers, source.size, this.#isLast());
    for (let offset = 0; !this.isFinished;) {
      try {
        const part = await source.read(offset, Math.min(SOURCE_READ_BYTES, source.size - offset));
        if (part.byteLength === 0) throw new Error(`a source of ${source.size} bytes ended after ${offset}`);
        await this.#writer.sendPart(offset === 0 ? headers : null, this.#isLast(), part, offset, source.size);
        offset += part.byteLength;
      } catch (error) {
        if (offset > 0) this.drop();
        throw error;
      }
    }
  }

  /** Starts a response of unknown length. */
  startStream(status: number, headers: readonly Header[]): void {
    if (this.isFinished) return;
    this.#body.discard();
    this.#writer.status = status;
    this.#writer.startStream(headers);
  }

  /**
   * Writes a part of the response that was started.
   *
   * @param part text, or UTF-8 bytes if the same part goes to many clients
   * @returns false if the client is behind: the part is buffered, and the next one should wait for `onDrain`. True once
   *   the exchange is finished.
   */
  write(part: string | Uint8Array): boolean {
    return this.isFinished || this.#writer.write(part);
  }

  /**
   * Calls `listener` each time that the client has taken everything after `write` returned false.
   *
   * @param filler a part without meaning: the core sends what it buffered for a slow client only when more is written
   */
  onDrain(filler: string, listener: () => void): void {
    if (!this.isFinished) this.#writer.onDrain(filler, listener);
  }

  /** Ends the response that was started. */
  endStream(): void {
    if (!this.isFinished) this.#writer.endStream(this.#options.draining());
  }

  /**
   * Calls `listener` once if the client goes away before it has the whole response; at once if the exchange is
   * finished. Replaces an earlier listener.
   */
  onDisconnect(listener: () => void): void {
    if (this.isFinished) listener();
    else this.#writer.onDisconnect(listener);
  }

  /**
   * Whether the core must not learn that the response is complete, because a large part of the body is still to come.
   * It would close a connection that is to be closed at once, which resets a client that is still sending, and on any
   * other connection it would parse what follows a chunked body as a request.
   */
  #mustLinger(): boolean {
    const { unread } = this.#body;
    return (
      unread > 0 &&
      (unread > MAX_SKIPPED_BYTES || this.head.connectionClose || this.#closes || this.#options.draining())
    );
  }

  /** Whether the response is the last on its connection. The core is not certain where a chunked body ends. */
  #isLast(): boolean {
    return this.head.chunked || this.#closes || this.#options.draining();
  }

  #onData(data: ArrayBuffer | Uint8Array, isLast: boolean): void {
    this.#body.arrive(data instanceof Uint8Array ? data : new Uint8Array(data), isLast);
  }

  #tooManyChunks(due: 'refuse' | 'close'): void {
    if (due === 'close') this.#writer.closeWhileReading();
    else if (!this.isFinished) this.#options.refuseChunks(this);
  }

  #abort(): void {
    this.#body.abandon();
    this.#writer.abort();
  }
}
