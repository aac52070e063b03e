/** Below the limits of the server (50 per second, 100 at once), which closes the socket of a faster client. */
const PER_SECOND = 40;
const BURST = 80;

/** How often to look again whether an empty bucket has a token, in milliseconds. */
export const REFILL_MS = 1_000 / PER_SECOND;

/** The tokens of one socket: each message takes one. A new bucket is full. */
export class Bucket {
  #tokens = BURST;
  #refilledAt = Date.now();

  /** How many tokens there are; not an integer. */
  get level(): number {
    const now = Date.now();
    this.#tokens = Math.min(BURST, this.#tokens + Math.max(0, now - this.#refilledAt) / REFILL_MS);
    this.#refilledAt = now;
    return this.#tokens;
  }

  /** Takes a token, if there is one. Returns whether it did. */
  take(): boolean {
    if (this.level < 1) return false;
    this.#tokens--;
    return true;
  }
}
