import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { isRequestId, newRequestId } from '../../net/request-id.ts';
import { type Header, statusLine } from '../../net/response-headers.ts';
import { remoteAddress } from '../../net/trusted-proxies.ts';
import { wireText } from '../../net/wire-text.ts';
import type { BodyStream } from './body-stream.ts';
import { type NoBody, RequestBody } from './request-body.ts';
import { RequestHead } from '../../net/request-head.ts';

/** What stands between a request's end and the next one on its connection. */
export interface ExchangeOptions {
  /** Whether connections are being wound up: the answer then says so and is the last on its connection. */
  readonly draining: () => boolean;
  /** Called once, when the answer has been handed over whole or the client is gone. */
  readonly finished: (exchange: Exchange) => void;
  /** Called when more of the request's body has arrived, before it is handled. */
  readonly onInput?: (() => void) | undefined;
}

/** Bytes that are read from where they are, and sent, in pieces. */
export interface BodySource {
  readonly size: number;
  /** `length` bytes from `offset` on, fewer only at the end. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Bodies from here on are sent piece by piece as the client takes them, instead of being copied for a slow one. */
const PIECEMEAL_BYTES = 128 * 1024;
/** An unread rest of a body up to here is read past by the core, and the connection serves further requests; beyond, it is closed. */
const SKIPPABLE_BYTES = 1024 * 1024;
/** Most bytes and milliseconds for which the rest of a body is read and dropped after its answer, before the connection is closed. */
const LINGER_BYTES = 64 * 1024 * 1024;
const LINGER_MS = 60_000;
/** What is read of a source at once, and kept for a slow client. */
const SOURCE_PIECE_BYTES = 256 * 1024;

/**
 * One request and its answer: the only thing that touches uWebSockets.js's request and response. It may be used after
 * the client went away and after the answer was sent: both make every further call do nothing.
 */
export class Exchange {
  readonly head: RequestHead;
  /** Names the request in logs and in `X-Request-Id`: the caller's, where it is well-formed, or one of ours. */
  readonly id: string;
  /** Status of the answer; 0 before there is one. */
  status = 0;
  /** Name of the route that serves it, for the log; '' for none. */
  route = '';
  /** `performance.now()` when the request came in. */
  readonly startedAt = performance.now();
  readonly #response: HttpResponse;
  readonly #options: ExchangeOptions;
  readonly #body: RequestBody;
  /** Whether there is a client that waits for the answer. */
  #alive = true;
  /** Whether the answer was handed over while the core still takes it for pending: all that is left is to close. */
  #lingering: NodeJS.Timeout | null = null;
  #paused = false;
  #onGone: (() => void) | null = null;

  /** Must be made, and `receiveBody` or `streamBody` called if the body is wanted, before the handler of uWebSockets.js returns. */
  constructor(response: HttpResponse, request: HttpRequest, options: ExchangeOptions) {
    this.#response = response;
    this.#options = options;
    response.onAborted(() => this.#abort());
    this.head = new RequestHead(request);
    this.#body = new RequestBody({ pause: () => this.#pause(), resume: () => this.#resume() }, this.head);
    if (this.#body.unread > 0) response.onData((data, isLast) => this.#arrive(data, isLast));
    this.id = isRequestId(this.head.requestId) ? this.head.requestId : newRequestId();
  }

  /** Whether the client went away or has its answer. */
  get over(): boolean {
    return !this.#alive;
  }

  /** The other end of the connection, as text in the form of uWebSockets.js; '' once the exchange is over. */
  get peer(): string {
    return this.#alive ? remoteAddress(this.#response) : '';
  }

  #arrive(data: ArrayBuffer, isLast: boolean): void {
    this.#options.onInput?.();
    this.#body.arrive(new Uint8Array(data), isLast);
  }

  /** Bytes of the body that are held in memory and not read yet. */
  get heldBytes(): number {
    return this.#body.heldBytes;
  }

  /**
   * Reads the body as a whole. Of one larger than `limit` bytes nothing is kept. Null for a limit that depends on the
   * caller: the promise then waits for `admitBody`.
   * @returns a promise that never rejects
   */
  receiveBody(limit: number | null): Promise<Buffer | NoBody> {
    return this.#body.collect(limit);
  }

  /** Reads the body piece by piece, as long as it may be. To be called before the handler returns, and gives the same after. */
  streamBody(): BodyStream {
    return this.#body.stream();
  }

  /**
   * Lets a large body in. Before that, no more than `UNADMITTED_BYTES` and one read of the core are taken of it.
   *
   * @param limit most bytes, where `receiveBody` was given null
   */
  admitBody(limit: number | null = null): void {
    this.#body.admit(limit);
  }

  /** Ends the connection without an answer. */
  drop(): void {
    if (this.#alive) this.#response.close();
  }

  /**
   * Answers, in one write. Nothing is sent once the exchange is over; to HEAD the body is not sent. Nothing more is kept
   * of the request's body: a rest of it is read and dropped, so that a client that sends it all before it reads gets the answer.
   */
  send(status: number, headers: readonly Header[], body: string | Uint8Array): void {
    if (!this.#alive) return;
    this.status = status;
    if (this.#mustLinger() && typeof body === 'string') return this.#sendAndLinger(headers, body);
    this.#body.discard();
    if (hasNoBody(status)) this.#sendBare(headers);
    else if (this.head.method === 'HEAD') this.#sendHead(headers, Buffer.byteLength(body));
    else if (body.length < PIECEMEAL_BYTES) this.#sendWhole(headers, body);
    else this.#sendPieces(headers, typeof body === 'string' ? Buffer.from(body) : body);
  }

  /**
   * Answers with what a source holds, read no faster than the client takes it; to HEAD nothing is read. Resolves when all
   * is handed over or the exchange is over otherwise. Rejects when the source fails; the answer may have begun then, and
   * the connection is ended.
   */
  async sendSource(status: number, headers: readonly Header[], source: BodySource): Promise<void> {
    if (!this.#alive) return;
    this.#body.discard();
    this.status = status;
    if (this.head.method === 'HEAD') return this.#sendHead(headers, source.size);
    for (let offset = 0; this.#alive; ) {
      try {
        const piece = await source.read(offset, Math.min(SOURCE_PIECE_BYTES, source.size - offset));
        if (piece.byteLength === 0) throw new Error(`a source of ${source.size} bytes ended after ${offset}`);
        await this.#offer(offset === 0 ? headers : null, piece, offset, source.size);
        offset += piece.byteLength;
      } catch (error) {
        if (offset > 0) this.drop();
        throw error;
      }
    }
  }

  /** Starts an answer of unknown length. */
  startStream(status: number, headers: readonly Header[]): void {
    if (!this.#alive) return;
    this.#body.discard();
    this.status = status;
    this.#response.cork(() => this.#begin(headers));
  }

  /**
   * Sends a part of the answer that was started.
   *
   * @param part text, or bytes of UTF-8 when one part goes to many
   * @returns false when the client is behind: the part is kept and will be sent, the next should wait for `onDrain`.
   *   True when the exchange is over.
   */
  write(part: string | Uint8Array): boolean {
    if (!this.#alive) return true;
    let taken = true;
    this.#response.cork(() => {
      taken = this.#response.write(typeof part === 'string' ? wireText(part) : part);
    });
    return taken;
  }

  /**
   * Calls `listener` every time the client has taken all that was written after `write` returned false.
   *
   * @param filler a part that means nothing: the core sends on what it kept for a slow client only when more is written
   */
  onDrain(filler: string, listener: () => void): void {
    if (!this.#alive) return;
    this.#response.onWritable(() => {
      const taken = this.write(filler);
      if (taken) listener();
      return taken;
    });
  }

  /** Ends the answer that was started. */
  endStream(): void {
    if (!this.#alive) return;
    this.#response.cork(() => this.#response.end(undefined, this.#options.draining()));
    this.#finish();
  }

  /** Calls `listener` once when the client goes away before its answer is whole. Replaces an earlier listener. */
  onGone(listener: () => void): void {
    if (this.#alive) this.#onGone = listener;
    else listener();
  }

  #pause(): void {
    if (this.#paused || !this.#alive) return;
    this.#paused = true;
    this.#response.pause();
  }

  #resume(): void {
    if (!this.#paused || (!this.#alive && this.#lingering === null)) return;
    this.#paused = false;
    this.#response.resume();
  }

  /**
   * Whether the core may not be told that the exchange is over. It would end a connection that is to be closed at once, which
   * resets a client that is still sending, and on any other it would take what follows a chunked body for a request.
   */
  #mustLinger(): boolean {
    const { unread } = this.#body;
    return unread > 0 && (unread > SKIPPABLE_BYTES || this.head.connectionClose || this.#options.draining());
  }

  /**
   * Answers without ending the response in the core, reads and drops the rest of the request's body within bounds, and then
   * closes the connection.
   */
  #sendAndLinger(headers: readonly Header[], text: string): void {
    const close = (): void => {
      if (this.#lingering === null) return;
      clearTimeout(this.#lingering);
      this.#response.close();
    };
    this.#response.cork(() => {
      this.#begin(headers);
      this.#response.writeHeader('Connection', wireText(closing(this.head.method === 'HEAD' || hasNoBody(this.status) ? null : text)));
    });
    this.#lingering = setTimeout(close, LINGER_MS).unref();
    this.#finish();
    // The core must not be made to close a connection while it parses what came over it.
    this.#body.discard(LINGER_BYTES, () => setImmediate(close));
  }

  #sendWhole(headers: readonly Header[], body: string | Uint8Array): void {
    this.#response.cork(() => {
      this.#begin(headers);
      this.#response.end(typeof body === 'string' ? wireText(body) : body, this.#isLast());
    });
    this.#finish();
  }

  #sendHead(headers: readonly Header[], length: number): void {
    this.#response.cork(() => {
      this.#begin(headers);
      // endWithoutBody(length) leaves the answer pending in the core of Node 20.
      this.#response.writeHeader('Content-Length', String(length));
      if (this.#isLast()) this.#response.writeHeader('Connection', 'close');
      this.#response.endWithoutBody();
    });
    this.#finish();
  }

  /** Answers with a status that never has a body. */
  #sendBare(headers: readonly Header[]): void {
    this.#response.cork(() => {
      this.#begin(headers);
      if (this.#isLast()) this.#response.writeHeader('Connection', 'close');
      this.#response.endWithoutBody();
    });
    this.#finish();
  }

  #sendPieces(headers: readonly Header[], body: Uint8Array): void {
    this.#onGone = null;
    const sendFrom = (offset: number): boolean => {
      const [taken, done] = this.#response.tryEnd(body.subarray(offset), body.byteLength);
      if (done) this.#finish();
      return taken;
    };
    this.#response.onWritable(sendFrom);
    this.#response.cork(() => {
      this.#begin(headers);
      if (this.#isLast()) this.#response.writeHeader('Connection', 'close');
      sendFrom(0);
    });
  }

  /** Hands over a piece of a body of `size` bytes that stands at `start`; before the first, the headers. Resolves when it is taken. */
  #offer(headers: readonly Header[] | null, piece: Uint8Array, start: number, size: number): Promise<void> {
    if (!this.#alive) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onGone = resolve;
      const sendFrom = (offset: number): boolean => {
        const [taken, done] = this.#response.tryEnd(piece.subarray(offset - start), size);
        if (done) this.#finish();
        if (taken || done) resolve();
        return taken;
      };
      this.#response.onWritable(sendFrom);
      this.#response.cork(() => {
        if (headers !== null) this.#begin(headers);
        if (headers !== null && this.#isLast()) this.#response.writeHeader('Connection', 'close');
        sendFrom(start);
      });
    });
  }

  #begin(headers: readonly Header[]): void {
    this.#response.writeStatus(statusLine(this.status));
    for (const [name, value] of headers) this.#response.writeHeader(name, value);
  }

  /** Where a chunked body ends is not certain in the core, so that no further request is taken from its connection. */
  #isLast(): boolean {
    return this.head.chunked || this.#options.draining();
  }

  #abort(): void {
    if (this.#lingering !== null) clearTimeout(this.#lingering);
    this.#lingering = null;
    this.#body.abandon();
    if (!this.#alive) return;
    this.#finish();
    this.#onGone?.();
  }

  #finish(): void {
    this.#alive = false;
    this.#options.finished(this);
  }
}

/**
 * The end of a head that says `Connection: close`, with the body after it, in a header's value: this writes a whole answer
 * and leaves it pending in the core. The core ends the value with a line break, which counts as part of the body (white space
 * at its end) or is the empty line after the head.
 */
function closing(text: string | null): string {
  return text === null ? 'close\r\n' : `close\r\nContent-Length: ${Buffer.byteLength(text) + 2}\r\n\r\n${text}`;
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}
