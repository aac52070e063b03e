/** Runs at most `limit` tasks at once; further tasks wait, first come first served. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param limit how many tasks may run at once, at least 1 */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** How many tasks are waiting. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `work` once a place is free. Resolves and rejects as `work` does. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
