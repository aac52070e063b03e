import type { Clock } from '../lib/clock.ts';

const FIRST_MS = 100;
const LONGEST_MS = 30_000;
const STEADY_MS = 60_000;

/** How long to wait before a worker that ended is replaced: not at all, then 100 ms, doubling up to 30 s; anew after 60 s alive. */
export class Backoff {
  readonly #clock: Clock;
  #nextMs = 0;
  #since = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A worker has been started. */
  started(): void {
    this.#since = this.#clock.monotonic();
  }

  /** The worker has ended. Returns the milliseconds to wait before the next. */
  ended(): number {
    if (this.#clock.monotonic() - this.#since >= STEADY_MS) this.#nextMs = 0;
    const wait = this.#nextMs;
    this.#nextMs = wait === 0 ? FIRST_MS : Math.min(wait * 2, LONGEST_MS);
    return wait;
  }
}
