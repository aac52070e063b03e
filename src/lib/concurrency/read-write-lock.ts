/** A readers–writer lock: shared tasks run together, an exclusive one runs alone. Waiting exclusive tasks go first. */
export class ReadWriteLock {
  /** Running shared tasks. */
  #shared = 0;
  #isExclusive = false;
  readonly #waitingShared: (() => void)[] = [];
  readonly #waitingExclusive: (() => void)[] = [];

  /** Runs `work` once no exclusive task runs or waits. Resolves and rejects as `work` does. */
  async shared<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isExclusive || this.#waitingExclusive.length > 0)
      await new Promise<void>((resolve) => this.#waitingShared.push(resolve));
    else this.#shared++;
    try {
      return await work();
    } finally {
      this.#shared--;
      this.#startNext();
    }
  }

  /**
   * Runs `work` once no other task runs. Exclusive tasks run in the order of the calls. Resolves and rejects as `work`
   * does.
   */
  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isExclusive || this.#shared > 0)
      await new Promise<void>((resolve) => this.#waitingExclusive.push(resolve));
    else this.#isExclusive = true;
    try {
      return await work();
    } finally {
      this.#isExclusive = false;
      this.#startNext();
    }
  }

  #startNext(): void {
    if (this.#isExclusive || this.#shared > 0) return;
    const next = this.#waitingExclusive.shift();
    if (next !== undefined) {
      this.#isExclusive = true;
      next();
      return;
    }
    for (const start of this.#waitingShared.splice(0)) {
      this.#shared++;
      start();
    }
  }
}
