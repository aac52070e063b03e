/**
 * Lets one piece of work at a time run per key, in the order of the calls. For work that would otherwise conflict with
 * itself in the store; across processes the store's own conflict detection remains.
 */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `work` once everything called earlier under `key` has settled. Settles as `work` does. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    let release = (): void => undefined;
    const tail = new Promise<void>((resolve) => (release = resolve));
    this.#tails.set(key, tail);
    await before;
    try {
      return await work();
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
      release();
    }
  }
}
