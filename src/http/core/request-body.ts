import { BodyCollector, type NoBody, UNADMITTED_BYTES } from './body-collector.ts';
import { ChunkCount } from './body-rules.ts';
import { BodyStream } from './body-stream.ts';
import type { Flow } from './flow.ts';

/** How the head of a request declares the length of its body. */
export interface BodyLength {
  /** Null when none is declared. */
  readonly contentLength: number | null;
  readonly chunked: boolean;
}

/** Receives the bytes of a body, which are valid only during the call. */
interface Sink {
  push(bytes: Uint8Array, isLast: boolean): void;
  /** Called after the last `push`; for a chunked body, in a later callback of the event loop. */
  end(): void;
  /** No more will come. */
  abandon(): void;
}

/**
 * The body of one request. It passes the bytes that the core delivers to the one reader that the route chooses. Without
 * a reader, and after `discard`, the bytes are counted and dropped.
 */
export class RequestBody {
  readonly #flow: Flow;
  readonly #chunked: boolean;
  readonly #onTooManyChunks: (due: 'refuse' | 'close') => void;
  readonly #chunks: ChunkCount | null;
  #unread: number;
  #isAdmitted = false;
  #sink: Sink | null = null;
  #stream: BodyStream | null = null;
  #collector: BodyCollector | null = null;
  #discarding: { bytesLeft: number; done: () => void } | null = null;

  /** @param onTooManyChunks called with what `ChunkCount.add` says is due, for each chunk that is one too many */
  constructor(flow: Flow, { contentLength, chunked }: BodyLength, onTooManyChunks: (due: 'refuse' | 'close') => void) {
    this.#flow = flow;
    this.#chunked = chunked;
    this.#chunks = chunked ? new ChunkCount() : null;
    this.#onTooManyChunks = onTooManyChunks;
    this.#unread = chunked ? Infinity : (contentLength ?? 0);
  }

  /** Bytes that are still to come; Infinity for a chunked body until its end. */
  get unread(): number {
    return this.#unread;
  }

  /** Bytes of the body that are buffered and not read yet. */
  get bufferedBytes(): number {
    return (this.#collector?.bufferedBytes ?? 0) + (this.#stream?.bufferedBytes ?? 0);
  }

  /** Takes bytes from the core. They are valid only during the call. */
  arrive(bytes: Uint8Array, isLast: boolean): void {
    this.#unread -= bytes.length;
    if (bytes.length > 0) this.#sink?.push(bytes, isLast);
    if (!isLast) this.#count(bytes.length);
    // The core reports the end of a chunked body before it parses the two bytes after it. If they begin a trailer or
    // another request, it closes the connection later in this callback, and by then the body must not have been used.
    else if (this.#chunked) setImmediate(() => this.#end());
    else this.#end();
  }

  /** As `Exchange.receiveBody`. */
  collect(limit: number | null): Promise<Buffer | NoBody> {
    return new Promise((resolve) => {
      this.#collector = new BodyCollector(this.#flow, this.#chunked ? null : this.#unread, limit, resolve);
      this.#readInto(this.#collector);
    });
  }

  /** As `Exchange.streamBody`. */
  stream(): BodyStream {
    if (this.#stream !== null) return this.#stream;
    const stream = new BodyStream(this.#flow, UNADMITTED_BYTES);
    this.#stream = stream;
    this.#readInto({
      push: (bytes) => stream.push(bytes, false),
      end: () => stream.push(new Uint8Array(0), true),
      abandon: () => stream.abandon(),
    });
    return stream;
  }

  /** As `Exchange.admitBody`. */
  admit(limit: number | null): void {
    if (this.#isAdmitted) return;
    this.#isAdmitted = true;
    this.#stream?.admit();
    this.#collector?.admit(limit);
  }

  /**
   * Frees what is buffered and drops what is still to come.
   *
   * @param maxBytes the most to drop before `done` is called
   * @param done called once, at the end of the body or after `maxBytes`; never after `abandon`
   */
  discard(maxBytes = Infinity, done: () => void = () => {}): void {
    this.#release();
    this.#flow.resume();
    if (this.#unread === 0) return done();
    this.#discarding = { bytesLeft: maxBytes, done };
  }

  /** Frees what is buffered: no more will come. */
  abandon(): void {
    this.#discarding = null;
    this.#release();
    this.#unread = 0;
  }

  #readInto(sink: Sink): void {
    this.#sink = sink;
    if (this.#unread === 0) this.#end();
  }

  #end(): void {
    this.#unread = 0;
    const sink = this.#sink;
    this.#sink = null;
    sink?.end();
    this.#finishDiscarding();
  }

  #release(): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.abandon();
    this.#stream?.abandon();
  }

  #count(length: number): void {
    if (this.#discarding !== null) {
      this.#discarding.bytesLeft -= length;
      if (this.#discarding.bytesLeft <= 0) this.#finishDiscarding();
    }
    const due = this.#chunks?.add(length) ?? null;
    if (due !== null) this.#onTooManyChunks(due);
  }

  #finishDiscarding(): void {
    const discarding = this.#discarding;
    this.#discarding = null;
    discarding?.done();
  }
}
