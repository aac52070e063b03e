import type { Clock } from '../../lib/clock.ts';

/** Failures in a row after which a filter is not run for a while. */
const MAX_FAILURES = 5;
/** How long it is not run, in milliseconds. */
const OPEN_MS = 30_000;

/**
 * Stops calling what has failed several times in a row, for a while. Then it is called again; the first failure stops
 * it for as long again. Each process finds out for itself: of a filter that fails, N processes make N times as many
 * calls.
 */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #failures = 0;
  #openUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Whether calls are left out now. */
  get isOpen(): boolean {
    return this.#failures >= MAX_FAILURES && this.#clock.monotonic() < this.#openUntil;
  }

  /** Counts a call that succeeded. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** Counts a call that failed. Returns whether this opened the breaker. */
  failed(): boolean {
    this.#failures++;
    if (this.#failures < MAX_FAILURES || this.isOpen) return false;
    this.#openUntil = this.#clock.monotonic() + OPEN_MS;
    return true;
  }
}
