/**
 * Shared memory: small facts that all processes of the cluster see at once and that may be lost with a power cut:
 * rate windows and who is connected. Every method is atomic across processes.
 */
export interface RateWindow {
  readonly allowed: boolean;
  /** Hits still allowed now, after this one. */
  readonly remaining: number;
  /** Milliseconds until the oldest counted hit leaves the window. When refused: until the next hit is allowed. */
  readonly resetMs: number;
}

export interface Shared {
  /**
   * Counts a hit if fewer than `limit` were counted in the `windowMs` before `now`: exact over a sliding window, in
   * any interval of that length at most `limit` hits are allowed. A refused hit is not counted.
   */
  hit(key: string, limit: number, windowMs: number, now: number): RateWindow;
  /** Forgets windows in which no hit was counted since `before` (milliseconds since the epoch). */
  sweepWindows(before: number): void;

  /** Adds `delta` to the count that `owner` (a worker) holds under `key`; a count that reaches 0 is forgotten. Returns the total of `key` over all owners. */
  count(key: string, owner: string, delta: number): number;
  /** The total of `key` over all owners. */
  total(key: string): number;
  /** Forgets everything that `owner` holds: it has ended. */
  dropOwner(owner: string): void;
  close(): Promise<void>;
}
