/** The bounds of the delay before a reconnect, in milliseconds. */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Added after the server reported too many requests. */
const SLOW_MS = 5_000;

/**
 * Delays between attempts to connect: random between zero and a bound that doubles with each failure ("full jitter"),
 * so that the clients of a restarted server do not come back at the same moment.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions = { firstMs: 500, maxMs: 30_000 }) {
    this.#options = options;
  }

  /** The delay before the next attempt, in milliseconds. `slowly` adds 5 s. */
  next(slowly = false): number {
    const bound = Math.min(this.#options.maxMs, this.#options.firstMs * 2 ** Math.min(this.#failures++, 20));
    return (slowly ? SLOW_MS : 0) + Math.random() * bound;
  }

  /** A connection succeeded. */
  reset(): void {
    this.#failures = 0;
  }
}
