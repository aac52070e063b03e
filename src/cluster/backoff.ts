import type { Clock } from '../lib/clock.ts';

const FIRST_MS = 100;
const MAX_MS = 30_000;
const RESET_AFTER_MS = 60_000;

/**
 * The delay before an ended worker is replaced: 0, then 100 ms, doubling up to 30 s; reset after a life of 60 s or
 * more.
 */
export class Backoff {
  readonly #clock: Clock;
  #nextMs = 0;
  #startedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call when a worker was started. */
  started(): void {
    this.#startedAt = this.#clock.monotonic();
  }

  /** Call when the worker has ended. Returns the milliseconds to wait before starting the next. */
  ended(): number {
    if (this.#clock.monotonic() - this.#startedAt >= RESET_AFTER_MS) this.#nextMs = 0;
    const wait = this.#nextMs;
    this.#nextMs = wait === 0 ? FIRST_MS : Math.min(wait * 2, MAX_MS);
    return wait;
  }
}
