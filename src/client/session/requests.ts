import { CollabError } from '../errors.ts';
import { Bucket, REFILL_MS } from './bucket.ts';

/** A request that was not answered yet. */
interface Request {
  readonly id: number;
  readonly type: string;
  readonly text: string;
  /** Whether it is sent again on the next connection if this one is lost before the answer. */
  readonly durable: boolean;
  /** Codes that mean, for a repetition, that the first attempt succeeded. */
  readonly repeated: readonly string[];
  /** How often it was sent. */
  sent: number;
  onCurrent: boolean;
  readonly resolve: (data: unknown) => void;
  readonly reject: (error: CollabError) => void;
}

/** How a request behaves when the connection is lost. */
export interface RequestOptions {
  readonly durable?: boolean;
  readonly repeated?: readonly string[];
}

/** Tokens that are kept for requests, so that cursors never delay a write. */
const RESERVE = 20;
/** How often a write is repeated that lost against other writes to the same record. */
const MAX_CONFLICTS = 5;

/**
 * The requests of a session over its connections: sends them in order, within the rate limit, matches the answers, and
 * repeats the durable ones after a loss. A message without an answer was not processed, or was and is recognised by its
 * id.
 */
export class Requests {
  readonly #pending = new Map<number, Request>();
  #send: ((text: string) => void) | null = null;
  #maxBytes = 65_536;
  #lastId = 0;
  #ended: CollabError | null = null;
  #bucket = new Bucket();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Sends a request as soon as there is a connection. Resolves with the `data` of its answer. */
  async request(type: string, data: object, { durable = false, repeated = [] }: RequestOptions = {}): Promise<unknown> {
    const id = ++this.#lastId;
    const text = JSON.stringify({ type, id, data });
    if (byteLength(text) > this.#maxBytes) {
      throw new CollabError(
        'payload_too_large',
        `The message ${type} is larger than ${this.#maxBytes} bytes. Shorten the text or the metadata.`,
      );
    }
    if (this.#ended) throw this.#ended;
    if (!this.#send && !durable) throw lost();
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { id, type, text, durable, repeated, sent: 0, onCurrent: false, resolve, reject });
      this.#flush();
    });
  }

  /** Sends a message without an answer; drops it if there is no connection, or if too many were sent. */
  post(type: string, data: object): void {
    if (!this.#send || this.#bucket.level <= RESERVE) return;
    const text = JSON.stringify({ type, data });
    if (byteLength(text) > this.#maxBytes) return;
    this.#bucket.take();
    this.#send(text);
  }

  /** Starts sending on a new connection, beginning with the requests that the last one did not answer. */
  connected(send: (text: string) => void, maxMessageBytes: number): void {
    this.#send = send;
    this.#maxBytes = maxMessageBytes;
    this.#bucket = new Bucket();
    this.#flush();
  }

  /** The connection was lost: requests that are not durable fail, the others wait. */
  lost(): void {
    this.#send = null;
    clearTimeout(this.#timer);
    for (const request of this.#pending.values()) {
      request.onCurrent = false;
      if (!request.durable) this.#finish(request, () => request.reject(lost()));
    }
  }

  /** Fails all requests, and later ones until `reopen`. */
  end(error: CollabError): void {
    this.#ended = error;
    this.lost();
    for (const request of this.#pending.values()) this.#finish(request, () => request.reject(error));
  }

  /** There will be another connection after all. */
  reopen(): void {
    this.#ended = null;
  }

  /** Handles the answer `ok`. */
  succeeded(id: number, data: unknown): void {
    const request = this.#pending.get(id);
    if (request) this.#finish(request, () => request.resolve(data));
  }

  /** Handles the answer `error`. */
  refused(id: number, error: CollabError): void {
    const request = this.#pending.get(id);
    if (!request) return;
    if (request.sent > 1 && request.repeated.includes(error.code))
      return this.#finish(request, () => request.resolve(null));
    if (error.code === 'write_conflict' && request.sent < MAX_CONFLICTS) {
      request.onCurrent = false;
      return this.#flush();
    }
    this.#finish(request, () => request.reject(error));
  }

  #finish(request: Request, settle: () => void): void {
    this.#pending.delete(request.id);
    settle();
  }

  /** Sends what waits, in the order of the calls, as far as the rate limit allows. */
  #flush(): void {
    if (!this.#send) return;
    clearTimeout(this.#timer);
    for (const request of this.#pending.values()) {
      if (request.onCurrent) continue;
      if (!this.#bucket.take()) {
        this.#timer = setTimeout(() => this.#flush(), REFILL_MS);
        return;
      }
      request.onCurrent = true;
      request.sent++;
      this.#send(request.text);
    }
  }
}

const lost = (): CollabError =>
  new CollabError('network', 'The connection to the server was lost before the answer arrived.');

/** The length of a text in UTF-8. */
export const byteLength = (text: string): number => new TextEncoder().encode(text).length;
