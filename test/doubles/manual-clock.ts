import type { Clock } from '../../src/lib/clock.ts';

/** A clock that changes only by `advance` and `set`. */
export class ManualClock implements Clock {
  #now: number;
  #monotonic = 1_000_000;
  constructor(start: number) {
    this.#now = start;
  }
  now(): number {
    return this.#now;
  }
  monotonic(): number {
    return this.#monotonic;
  }
  /** Advances both clocks by `ms` milliseconds. */
  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
  }
  /** Sets the wall clock, as an operator or NTP does, without advancing the monotonic clock. */
  set(now: number): void {
    this.#now = now;
  }
}
