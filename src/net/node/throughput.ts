import type { IncomingMessage, ServerResponse } from 'node:http';

/** A body must arrive at 16 kB/s, measured over this time, as with the native core. */
const RECEIVE_WINDOW_MS = 10_000;
const RECEIVE_WINDOW_BYTES = 16 * 1024 * 10;
/** A client that reads nothing for this long, although data waits for it, is disconnected. In milliseconds. */
export const STALLED_MS = 60_000;

/** Measures one exchange: whether its body arrives fast enough, and whether its client takes the response. */
export class Throughput {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #received = 0;
  #windowFrom = 0;
  #waiting = 0;
  #waitingSince = Infinity;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  /** Bytes of the body have arrived. */
  receive(bytes: number): void {
    this.#received += bytes;
  }

  /** Whether the client is too slow. Called about twice a second with a monotonic time in milliseconds. */
  isTooSlow(now: number): boolean {
    return this.#sendsTooSlowly(now) || this.#takesNothing(now);
  }

  #sendsTooSlowly(now: number): boolean {
    if (this.#windowFrom === 0 || this.#request.isPaused() || this.#received >= RECEIVE_WINDOW_BYTES) {
      this.#windowFrom = now;
      this.#received = 0;
      return false;
    }
    return !this.#request.complete && now - this.#windowFrom > RECEIVE_WINDOW_MS;
  }

  #takesNothing(now: number): boolean {
    const waiting = this.#response.writableLength;
    if (waiting === 0 || waiting < this.#waiting) this.#waitingSince = now;
    this.#waiting = waiting;
    return waiting > 0 && now - this.#waitingSince > STALLED_MS;
  }
}
