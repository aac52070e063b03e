import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { wireText } from '../lib/wire-text.ts';
import { BodyStream } from './body-stream.ts';
import { RequestHead } from './request-head.ts';

/** Both are ASCII: the core may send other characters as Latin-1. */
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

/** Bytes that are read from where they are, and sent, in pieces. */
export interface BodySource {
  readonly size: number;
  /** `length` bytes from `offset` on, fewer only at the end. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Bodies from here on are sent piece by piece as the client takes them, instead of being copied for a slow one. */
const PIECEMEAL_BYTES = 128 * 1024;
/** An unread rest of a body up to here is read past; beyond, the connection is closed. */
const SKIPPABLE_BYTES = 1024 * 1024;
/** What is taken in of a body before its limit is known; past it the client has to wait. */
const UNSIZED_BYTES = 1024 * 1024;
/**
 * The same of a body that may be large, as a file or a shared state: those who send a file look for an answer only when they have sent it all.
 * Beyond, nothing more is read, and the client finds the answer when it looks.
 */
const SKIPPABLE_STREAM_BYTES = 32 * 1024 * 1024;
/** What is read of a source at once, and kept for a slow client. */
const SOURCE_PIECE_BYTES = 256 * 1024;

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
  #paused = false;
  /** Whether bodies of many megabytes are expected. */
  #isLarge = false;
  #onGone: (() => void) | null = null;
  #onLimit: ((limit: number) => void) | null = null;
  #stream: BodyStream | null = null;

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
   * Reads the body. Of one larger than `limit` bytes nothing is kept. Null for a limit that depends on who asks: little
   * is taken in until `limitBody` says it.
   * @returns a promise that never rejects
   */
  receiveBody(limit: number | null): Promise<Buffer | NoBody> {
    this.#isLarge = limit === null;
    if (limit !== null && !this.head.chunked && this.#unread > limit) return Promise.resolve('too_large');
    return new Promise((resolve) => {
      const body = { chunks: [] as Buffer[], size: 0, whole: false, limit };
      const look = (): void => {
        if (body.limit === null) return;
        if (body.size > body.limit || (!this.head.chunked && body.size + this.#unread > body.limit)) {
          body.chunks = [];
          resolve('too_large');
        } else if (body.whole) {
          const [first = Buffer.alloc(0), ...more] = body.chunks;
          resolve(more.length === 0 ? first : Buffer.concat(body.chunks));
        }
      };
      this.#onGone = () => resolve('gone');
      this.#onLimit = (known) => {
        body.limit = known;
        look();
      };
      this.#response.onData((data, isLast) => {
        body.size += data.byteLength;
        this.#unread = isLast ? 0 : this.#unread - data.byteLength;
        body.whole = isLast;
        // The memory of a chunk is borrowed for this call.
        if (body.limit === null || body.size <= body.limit) body.chunks.push(Buffer.from(new Uint8Array(data)));
        if (body.limit === null && body.size > UNSIZED_BYTES && !isLast) this.#pause();
        look();
      });
    });
  }

  /** Says the limit that `receiveBody` was not given. */
  limitBody(limit: number): void {
    this.#resume();
    this.#onLimit?.(limit);
    this.#onLimit = null;
  }

  /** Reads the body piece by piece, as long as it may be. To be called before the handler returns, and gives the same after. */
  streamBody(): BodyStream {
    if (this.#stream !== null) return this.#stream;
    const stream = new BodyStream({ pause: () => this.#pause(), resume: () => this.#resume() });
    this.#stream = stream;
    this.#onGone = () => stream.abandon();
    if (!this.head.chunked && this.#unread === 0) stream.take(new Uint8Array(0), true);
    this.#response.onData((data, isLast) => {
      this.#unread = isLast ? 0 : this.#unread - data.byteLength;
      stream.take(new Uint8Array(data), isLast);
    });
    return stream;
  }

  /** Ends the connection without an answer. */
  drop(): void {
    if (this.#alive) this.#response.close();
  }

  /** Answers, in one write. Nothing is sent once the exchange is over; to HEAD the body is not sent. */
  send(status: number, headers: readonly Header[], body: string | Uint8Array): void {
    if (!this.#alive) return;
    this.#leaveBody();
    this.status = status;
    if (status === 204 || status === 304) this.#sendBare(headers);
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
    if (!this.#paused || !this.#alive) return;
    this.#paused = false;
    this.#response.resume();
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

  /** What is to become of the rest of the body, now that the answer is there. */
  #leaveBody(): void {
    if (this.#isStuck()) this.#pause();
    else this.#resume();
  }

  /** Whether the client still sends more than anybody wants to read: it is left alone with that, and with the answer. */
  #isStuck(): boolean {
    return this.#stream !== null && this.#unread > SKIPPABLE_STREAM_BYTES;
  }

  #begin(headers: readonly Header[]): void {
    this.#response.writeStatus(statusLine(this.status));
    for (const [name, value] of headers) this.#response.writeHeader(name, value);
    if (this.#isStuck()) this.#response.writeHeader('Connection', 'close');
  }

  #isLast(): boolean {
    const skippable = this.#isLarge ? SKIPPABLE_STREAM_BYTES : SKIPPABLE_BYTES;
    return (this.#stream === null && this.#unread > skippable) || this.#options.draining();
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
