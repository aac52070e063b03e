import type { CoreResponse } from '../../net/core.ts';
import { type Header, statusLine } from '../../net/response-headers.ts';
import { remoteAddress } from '../../net/trusted-proxies.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Flow } from './flow.ts';

/** Larger bodies are sent in parts as the client takes them, instead of being copied for a slow client. */
const MAX_SINGLE_WRITE_BYTES = 128 * 1024;
/** Milliseconds that a lingering connection stays open at most. */
const LINGER_MS = 60_000;

/**
 * Writes one response through the core. Touching the core's response after its end throws, so the methods must only be
 * called while `isOpen`, unless they say otherwise. `docs/decisions/0007` explains the quirks of the core.
 */
export class ResponseWriter implements Flow {
  /** The status of the response; 0 before there is one. */
  status = 0;
  /** Whether the client lets the connection stay open. */
  keepsAlive = true;
  readonly #response: CoreResponse;
  readonly #onFinish: () => void;
  #isOpen = true;
  #paused = false;
  /** Set while the response is written and the connection has yet to be closed. */
  #lingerTimer: NodeJS.Timeout | null = null;
  #onDisconnect: (() => void) | null = null;

  /** @param onFinish called once, when the whole response is handed over or the client is gone */
  constructor(response: CoreResponse, onFinish: () => void) {
    this.#response = response;
    this.#onFinish = onFinish;
  }

  /** Whether the client waits for the response or for the rest of it. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** As `remoteAddress`. */
  get peer(): string {
    return remoteAddress(this.#response);
  }

  /** Stops reading from the connection. Safe to call at any time. */
  pause(): void {
    if (this.#paused || !this.#isOpen) return;
    this.#paused = true;
    this.#response.pause();
  }

  /** Continues reading from the connection. Safe to call at any time. */
  resume(): void {
    if (!this.#paused || (!this.#isOpen && this.#lingerTimer === null)) return;
    this.#paused = false;
    this.#response.resume();
  }

  /** Calls `listener` once if the client goes away before it has the whole response. Replaces an earlier listener. */
  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener;
  }

  /** Closes the connection without a response. */
  close(): void {
    this.#response.close();
  }

  /**
   * Closes the connection within the callback that delivers a part of the body, also after `sendAndLinger`. Does
   * nothing once the core has the end of the response.
   */
  closeWhileReading(): void {
    if (this.#isOpen || this.#lingerTimer !== null) this.#response.close();
  }

  /** Marks the native response as gone. Must be called when the core aborts it. Safe to call at any time. */
  abort(): void {
    if (this.#lingerTimer !== null) clearTimeout(this.#lingerTimer);
    this.#lingerTimer = null;
    if (!this.#isOpen) return;
    this.#finish();
    this.#onDisconnect?.();
  }

  /** Sends a response with a body. `isLast`: the connection is closed after it. */
  sendWhole(headers: readonly Header[], body: string | Uint8Array, isLast: boolean): void {
    if (body.length >= MAX_SINGLE_WRITE_BYTES) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      this.#sendPart(headers, isLast, bytes, 0, bytes.byteLength, () => {});
      return;
    }
    this.#response.cork(() => {
      this.#writeHead(headers, isLast);
      this.#response.end(typeof body === 'string' ? wireText(body) : body, isLast);
    });
    this.#finish();
  }

  /**
   * Sends a response without its body. `length`: the `Content-Length` to declare, in a response to HEAD; null for none.
   */
  sendHead(headers: readonly Header[], length: number | null, isLast: boolean): void {
    this.#response.cork(() => {
      this.#writeHead(headers, isLast);
      // The core of Node 20 leaves the response pending after endWithoutBody(length).
      if (length !== null) this.#response.writeHeader('Content-Length', String(length));
      if (isLast) this.#response.writeHeader('Connection', 'close');
      this.#response.endWithoutBody();
    });
    this.#finish();
  }

  /**
   * Sends a part of a body of `size` bytes, which begins at `start`. Resolves once the client has taken it or is gone.
   *
   * @param headers the headers of the response, with the first part; null with the others
   */
  sendPart(
    headers: readonly Header[] | null,
    isLast: boolean,
    part: Uint8Array,
    start: number,
    size: number,
  ): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    return new Promise((resolve) => this.#sendPart(headers, isLast, part, start, size, resolve));
  }

  /** Starts a response of unknown length. */
  startStream(headers: readonly Header[]): void {
    this.#response.cork(() => this.#writeHead(headers, true));
  }

  /**
   * Writes a part of the response that was started. Returns false if the client is behind; the part is buffered then.
   */
  write(part: string | Uint8Array): boolean {
    let taken = true;
    this.#response.cork(() => {
      taken = this.#response.write(typeof part === 'string' ? wireText(part) : part);
    });
    return taken;
  }

  /** As `Exchange.onDrain`. */
  onDrain(filler: string, listener: () => void): void {
    this.#response.onWritable(() => {
      const taken = !this.#isOpen || this.write(filler);
      if (taken) listener();
      return taken;
    });
  }

  /** Ends the response that was started. */
  endStream(isLast: boolean): void {
    this.#response.cork(() => this.#response.end(undefined, isLast));
    this.#finish();
  }

  /**
   * Writes a whole response but leaves it pending in the core, which then neither closes the connection nor takes
   * another request from it. `endLingering`, or a timeout, closes the connection.
   *
   * @param text the body; null for none
   */
  sendAndLinger(headers: readonly Header[], text: string | null): void {
    this.#response.cork(() => {
      this.#writeHead(headers, true);
      this.#response.writeHeader('Connection', wireText(closeAndBody(text)));
    });
    this.#lingerTimer = setTimeout(() => this.endLingering(), LINGER_MS).unref();
    this.#finish();
  }

  /**
   * Closes the connection after `sendAndLinger`. Must not be called while the core parses what it has read. Safe to
   * call at any time.
   */
  endLingering(): void {
    if (this.#lingerTimer === null) return;
    clearTimeout(this.#lingerTimer);
    this.#response.close();
  }

  #sendPart(
    headers: readonly Header[] | null,
    isLast: boolean,
    part: Uint8Array,
    start: number,
    size: number,
    onTaken: () => void,
  ): void {
    this.#onDisconnect = onTaken;
    const sendFrom = (offset: number): boolean => {
      const [taken, done] = this.#response.tryEnd(part.subarray(offset - start), size);
      if (done) this.#finish();
      if (taken || done) onTaken();
      return taken;
    };
    this.#response.onWritable(sendFrom);
    this.#response.cork(() => {
      if (headers !== null) this.#writeHead(headers, isLast);
      if (headers !== null && isLast) this.#response.writeHeader('Connection', 'close');
      sendFrom(start);
    });
  }

  /** `isLast`: announces no time for which the connection stays open. */
  #writeHead(headers: readonly Header[], isLast: boolean): void {
    this.#response.writeStatus(statusLine(this.status, this.keepsAlive && !isLast));
    for (const [name, value] of headers) this.#response.writeHeader(name, value);
  }

  #finish(): void {
    this.#isOpen = false;
    this.#onFinish();
  }
}

/**
 * The end of a response head that says `Connection: close`, with the body after it, as the value of a header. The core
 * ends the value with a line break, which counts as part of the body (white space at its end) or is the empty line
 * after the head.
 */
function closeAndBody(text: string | null): string {
  return text === null ? 'close\r\n' : `close\r\nContent-Length: ${Buffer.byteLength(text) + 2}\r\n\r\n${text}`;
}
