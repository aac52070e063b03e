import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { RequestHead } from './request-head.ts';

export type Header = readonly [name: string, value: string];

/** Why there is no body: it is larger than allowed, or the client went away. */
export type NoBody = 'too_large' | 'gone';

/** What stands between a request's end and the next one on its connection. */
export interface ExchangeOptions {
  /** Whether connections are being wound up: the answer then says so and is the last on its connection. */
  readonly draining: () => boolean;
  /** Called once, when the answer has been handed over whole or the client is gone. */
  readonly finished: (exchange: Exchange) => void;
}

/** Bodies from here on are sent piece by piece as the client takes them, instead of being copied for a slow one. */
const PIECEMEAL_BYTES = 128 * 1024;
/** An unread rest of a body up to here is read past; beyond, the connection is closed. */
const SKIPPABLE_BYTES = 1024 * 1024;

const processPrefix = randomBytes(6).toString('base64url');
const givenIds = { count: 0 };

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
  /** Whether `#response` may still be touched. */
  #alive = true;
  #unread: number;
  #onGone: (() => void) | null = null;

  /** Must be made, and `receiveBody` called if the body is wanted, before the handler of uWebSockets.js returns. */
  constructor(response: HttpResponse, request: HttpRequest, options: ExchangeOptions) {
    this.#response = response;
    this.#options = options;
    response.onAborted(() => this.#abort());
    this.head = new RequestHead(request);
    this.#unread = this.head.chunked ? Infinity : (this.head.contentLength ?? 0);
    this.id = isRequestId(this.head.requestId) ? this.head.requestId : newRequestId();
  }

  /** Whether the client went away or has its answer. */
  get over(): boolean {
    return !this.#alive;
  }

  /** The other end of the connection, as text in the form of uWebSockets.js; '' once the exchange is over. */
  get peer(): string {
    return this.#alive ? Buffer.from(this.#response.getRemoteAddressAsText()).toString('latin1') : '';
  }

  /**
   * Reads the body. Of one larger than `limit` bytes nothing is kept.
   * @returns a promise that never rejects
   */
  receiveBody(limit: number): Promise<Buffer | NoBody> {
    if (!this.head.chunked && this.#unread > limit) return Promise.resolve('too_large');
    return new Promise((resolve) => {
      let chunks: Buffer[] = [];
      let size = 0;
      this.#onGone = () => resolve('gone');
      this.#response.onData((data, isLast) => {
        size += data.byteLength;
        this.#unread = isLast ? 0 : this.#unread - data.byteLength;
        if (size > limit) {
          chunks = [];
          resolve('too_large');
          return;
        }
        // The memory of a chunk is borrowed for this call.
        chunks.push(Buffer.from(new Uint8Array(data)));
        if (isLast) resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
      });
    });
  }

  /** Ends the connection without an answer. */
  drop(): void {
    if (this.#alive) this.#response.close();
  }

  /** Answers, in one write. Nothing is sent once the exchange is over; to HEAD the body is not sent. */
  send(status: number, headers: readonly Header[], body: string | Uint8Array): void {
    if (!this.#alive) return;
    this.status = status;
    if (this.head.method === 'HEAD') this.#sendHead(headers, body);
    else if (body.length < PIECEMEAL_BYTES) this.#sendWhole(headers, body);
    else this.#sendPieces(headers, typeof body === 'string' ? Buffer.from(body) : body);
  }

  /** Starts an answer of unknown length. */
  startStream(status: number, headers: readonly Header[]): void {
    if (!this.#alive) return;
    this.status = status;
    this.#response.cork(() => this.#begin(headers));
  }

  /**
   * Sends a part of the answer that was started.
   * @returns false when the client is behind: the part is kept and will be sent, the next should wait for `onDrain`.
   *   True when the exchange is over.
   */
  write(part: string): boolean {
    if (!this.#alive) return true;
    let taken = true;
    this.#response.cork(() => {
      taken = this.#response.write(part);
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

  #sendWhole(headers: readonly Header[], body: string | Uint8Array): void {
    this.#response.cork(() => {
      this.#begin(headers);
      this.#response.end(body, this.#isLast());
    });
    this.#finish();
  }

  #sendHead(headers: readonly Header[], body: string | Uint8Array): void {
    this.#response.cork(() => {
      this.#begin(headers);
      // endWithoutBody(length) leaves the answer pending in the core of Node 20.
      this.#response.writeHeader('Content-Length', String(Buffer.byteLength(body)));
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

  #begin(headers: readonly Header[]): void {
    this.#response.writeStatus(statusLine(this.status));
    for (const [name, value] of headers) this.#response.writeHeader(name, value);
  }

  #isLast(): boolean {
    return this.#unread > SKIPPABLE_BYTES || this.#options.draining();
  }

  #abort(): void {
    if (!this.#alive) return;
    this.#finish();
    this.#onGone?.();
  }

  #finish(): void {
    this.#alive = false;
    this.#options.finished(this);
  }
}

const statusLines = new Map<number, string>();

function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? ''}`;
    statusLines.set(status, line);
  }
  return line;
}

function isRequestId(text: string): boolean {
  return text !== '' && /^[A-Za-z0-9._-]{1,64}$/.test(text);
}

function newRequestId(): string {
  givenIds.count += 1;
  return `${processPrefix}-${givenIds.count.toString(36)}`;
}
