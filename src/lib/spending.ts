interface Account {
  /** What is spent and not yet paid back at `at`. */
  level: number;
  at: number;
}

/**
 * How much of something each key has spent lately, in this process: a leaky bucket per key. A key may spend `limit` at
 * once, and gets `limit` back evenly over each window. Bounded in keys.
 */
export class Spending {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #capacity: number;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();

  /**
   * @param limit what a key may spend per window; 0 for any amount
   * @param windowMs length of the window in milliseconds
   * @param capacity most keys that are remembered; the one that spent longest ago is forgotten
   * @param now milliseconds of a monotonic clock
   */
  constructor(limit: number, windowMs: number, capacity: number, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#capacity = capacity;
    this.#now = now;
  }

  /**
   * Milliseconds until the key may spend `amount`; 0 when it may now. More than the limit may be spent only by a key that
   * owes nothing.
   */
  waitMs(key: string, amount: number): number {
    if (this.#limit === 0) return 0;
    const excess = this.#levelOf(key) + Math.min(amount, this.#limit) - this.#limit;
    return Math.max(0, (excess * this.#windowMs) / this.#limit);
  }

  /** Counts what the key has spent, whether or not it was allowed to. */
  spend(key: string, amount: number): void {
    if (this.#limit === 0) return;
    const level = this.#levelOf(key) + amount;
    this.#accounts.delete(key);
    this.#accounts.set(key, { level, at: this.#now() });
    if (this.#accounts.size <= this.#capacity) return;
    for (const oldest of this.#accounts.keys()) {
      this.#accounts.delete(oldest);
      return;
    }
  }

  #levelOf(key: string): number {
    const account = this.#accounts.get(key);
    if (account === undefined) return 0;
    return Math.max(0, account.level - ((this.#now() - account.at) * this.#limit) / this.#windowMs);
  }
}
