import type { Clock } from '../../src/lib/clock.ts';

/** A clock that stands still until `advance` or `set` is called. */
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
  /** Lets `ms` milliseconds pass. */
  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
  }
  /** Sets the wall clock, as an operator or NTP does; no time passes. */
  set(now: number): void {
    this.#now = now;
  }
}
