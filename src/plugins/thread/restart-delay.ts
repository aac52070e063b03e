/** Ends in this time that do not delay the next start, in milliseconds. */
const WINDOW_MS = 60_000;
const FREE_RESTARTS = 3;
const FIRST_DELAY_MS = 1_000;
const LAST_DELAY_MS = 30_000;

/** How long a thread that keeps ending waits before it starts again: after four ends in a minute longer and longer. */
export class RestartDelay {
  readonly #ends: number[] = [];

  /** Counts an end of the thread. */
  ended(): void {
    this.#ends.push(performance.now());
  }

  /** Milliseconds that a start has to wait now. */
  get ms(): number {
    const since = performance.now() - WINDOW_MS;
    while (this.#ends[0] !== undefined && this.#ends[0] < since) this.#ends.shift();
    const excess = this.#ends.length - FREE_RESTARTS;
    return excess <= 0 ? 0 : Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** (excess - 1));
  }
}
