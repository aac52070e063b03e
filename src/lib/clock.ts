/** The only source of time. Tests pass a clock that they control. */
export interface Clock {
  /**
   * Wall-clock time in milliseconds since the epoch: for timestamps and expiry dates. It can jump in either direction
   * when an operator or NTP sets the clock, so never measure a duration with it.
   */
  now(): number;
  /**
   * Milliseconds from an arbitrary origin, never decreasing: for durations and deadlines. All processes of one machine
   * share the origin until the machine reboots, so a value may be stored in shared memory, but not on disk.
   */
  monotonic(): number;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  // `performance.now` reads the same clock, but counts from the start of this process.
  monotonic: () => {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1_000 + nanoseconds / 1e6;
  },
};

/** How far the wall clock is ahead of the monotonic one, in milliseconds. It changes when the wall clock is set. */
export const clockOffset = (clock: Clock): number => clock.now() - clock.monotonic();

let isoMs = Number.NaN;
let iso = '';

/** `ms` as ISO 8601 UTC with milliseconds, the only time format that the server outputs. */
export function timestamp(ms: number): string {
  if (ms !== isoMs) {
    // Throws for a time that cannot be written, which must not be remembered then.
    iso = new Date(ms).toISOString();
    isoMs = ms;
  }
  return iso;
}
