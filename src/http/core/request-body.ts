import { BodyStream } from './body-stream.ts';

/** Why there is no body: it is larger than allowed, or the client went away. */
export type NoBody = 'too_large' | 'gone';

/** Stops and restarts the reading of a connection. */
export interface Flow {
  pause(): void;
  resume(): void;
}

/** How the length of a body is declared in the head of its request. */
export interface BodyLength {
  /** Null when there is none. */
  readonly contentLength: number | null;
  readonly chunked: boolean;
}

/** What takes the bytes of a body. They are borrowed for the call. */
interface Sink {
  take(bytes: Uint8Array, isLast: boolean): void;
  /** Called after the last `take`, in a later turn for a chunked body. */
  end(): void;
  gone(): void;
}

/** Most bytes that are kept of a body before the request is admitted, besides what the core reads at once (512 KiB). */
export const UNADMITTED_BYTES = 64 * 1024;

/**
 * The body of one request, from the bytes that the core hands over to the one reader that the route chooses. Without a
 * reader, and after `discard`, the bytes are counted and dropped.
 */
export class RequestBody {
  readonly #flow: Flow;
  readonly #chunked: boolean;
  #unread: number;
  #admitted = false;
  #sink: Sink | null = null;
  #stream: BodyStream | null = null;
  #collector: Collector | null = null;
  #discarding: { left: number; done: () => void } | null = null;

  constructor(flow: Flow, { contentLength, chunked }: BodyLength) {
    this.#flow = flow;
    this.#chunked = chunked;
    this.#unread = chunked ? Infinity : (contentLength ?? 0);
  }

  /** Bytes that are still to come; Infinity for a chunked body until its end. */
  get unread(): number {
    return this.#unread;
  }

  /** Bytes of the body that are held in memory and not read yet. */
  get heldBytes(): number {
    return (this.#collector?.heldBytes ?? 0) + (this.#stream?.heldBytes ?? 0);
  }

  /** Takes what the core has read. The bytes are borrowed for the call. */
  arrive(bytes: Uint8Array, isLast: boolean): void {
    this.#unread -= bytes.length;
    if (bytes.length > 0) this.#sink?.take(bytes, isLast);
    if (!isLast) this.#countDiscarded(bytes.length);
    // The core reports the end of a chunked body before it parses the two bytes after it. Where these begin a trailer or
    // another request, it closes the connection later in this turn, and the body must not have been used by then.
    else if (this.#chunked) setImmediate(() => this.#end());
    else this.#end();
  }

  /** As `Exchange.receiveBody`. */
  collect(limit: number | null): Promise<Buffer | NoBody> {
    return new Promise((resolve) => {
      this.#collector = new Collector(this.#flow, this.#chunked ? null : this.#unread, limit, resolve);
      this.#read(this.#collector);
    });
  }

  /** As `Exchange.streamBody`. */
  stream(): BodyStream {
    if (this.#stream !== null) return this.#stream;
    const stream = new BodyStream(this.#flow, UNADMITTED_BYTES);
    this.#stream = stream;
    this.#read({ take: (bytes) => stream.take(bytes, false), end: () => stream.take(new Uint8Array(0), true), gone: () => stream.abandon() });
    return stream;
  }

  /** As `Exchange.admitBody`. */
  admit(limit: number | null): void {
    if (this.#admitted) return;
    this.#admitted = true;
    this.#stream?.admit();
    this.#collector?.admit(limit);
  }

  /**
   * Frees what is held and drops what is still to come.
   *
   * @param most bytes to drop
   * @param done called once, at the end of the body or after `most` bytes; never after `abandon`
   */
  discard(most = Infinity, done: () => void = () => {}): void {
    this.#release();
    this.#flow.resume();
    if (this.#unread === 0) return done();
    this.#discarding = { left: most, done };
  }

  /** Frees what is held: no more will come. */
  abandon(): void {
    this.#discarding = null;
    this.#release();
    this.#unread = 0;
  }

  #read(sink: Sink): void {
    this.#sink = sink;
    if (this.#unread === 0) this.#end();
  }

  #end(): void {
    this.#unread = 0;
    const sink = this.#sink;
    this.#sink = null;
    sink?.end();
    this.#doneDiscarding();
  }

  #release(): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.gone();
    this.#stream?.abandon();
  }

  #countDiscarded(length: number): void {
    if (this.#discarding === null) return;
    this.#discarding.left -= length;
    if (this.#discarding.left <= 0) this.#doneDiscarding();
  }

  #doneDiscarding(): void {
    const discarding = this.#discarding;
    this.#discarding = null;
    discarding?.done();
  }
}

/** Puts a body together that is read as a whole. */
class Collector implements Sink {
  readonly #flow: Flow;
  /** Null when it is not declared. */
  readonly #length: number | null;
  #limit: number | null;
  #settle: ((body: Buffer | NoBody) => void) | null;
  #chunks: Buffer[] = [];
  #size = 0;
  #admitted = false;
  #whole = false;

  constructor(flow: Flow, length: number | null, limit: number | null, settle: (body: Buffer | NoBody) => void) {
    this.#flow = flow;
    this.#length = length;
    this.#limit = limit;
    this.#settle = settle;
    this.#check();
  }

  get heldBytes(): number {
    return this.#settle === null ? 0 : this.#size;
  }

  take(bytes: Uint8Array, isLast: boolean): void {
    if (this.#settle === null) return;
    this.#size += bytes.length;
    if (this.#check()) return;
    this.#chunks.push(Buffer.from(bytes));
    if (!isLast && !this.#admitted && this.#size > UNADMITTED_BYTES) this.#flow.pause();
  }

  admit(limit: number | null): void {
    this.#admitted = true;
    this.#limit = limit ?? this.#limit;
    this.#flow.resume();
    if (this.#settle === null) return;
    if (!this.#check() && this.#whole) this.end();
  }

  end(): void {
    this.#whole = true;
    // A body that is not admitted waits for its limit.
    if (this.#limit === null) return;
    const [first = Buffer.alloc(0), ...more] = this.#chunks;
    this.#finish(more.length === 0 ? first : Buffer.concat(this.#chunks));
  }

  gone(): void {
    this.#finish('gone');
  }

  /** Whether the body is too large, as declared or as it came. */
  #check(): boolean {
    const isTooLarge = this.#limit !== null && Math.max(this.#length ?? 0, this.#size) > this.#limit;
    if (isTooLarge) this.#finish('too_large');
    return isTooLarge;
  }

  #finish(body: Buffer | NoBody): void {
    this.#settle?.(body);
    this.#settle = null;
    this.#chunks = [];
  }
}
