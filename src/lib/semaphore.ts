/** Lets at most so many pieces of work run at once; the others wait, first come first served. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param width how many may run at once, at least 1 */
  constructor(width: number) {
    this.#free = width;
  }

  /** How many wait for room. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `work` when there is room, and gives what it gives or throws what it throws. */
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
