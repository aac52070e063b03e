/** The one source of time. Tests pass a clock that they turn. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** A clock that stands still until `advance` or `set` is called. */
export class ManualClock implements Clock {
  #now: number;
  constructor(start: number) {
    this.#now = start;
  }
  now(): number {
    return this.#now;
  }
  /** Turns the clock forward by `ms` milliseconds. */
  advance(ms: number): void {
    this.#now += ms;
  }
  set(now: number): void {
    this.#now = now;
  }
}

let isoMs = Number.NaN;
let iso = '';

/** `ms` as ISO 8601 UTC with milliseconds, the only form of time that leaves the server (service §2). */
export function timestamp(ms: number): string {
  if (ms !== isoMs) {
    isoMs = ms;
    iso = new Date(ms).toISOString();
  }
  return iso;
}
