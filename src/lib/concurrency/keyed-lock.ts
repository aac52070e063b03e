/**
 * Runs one task at a time per key, in the order of the calls. For tasks that would otherwise conflict with each other
 * in the store; conflicts between processes are still detected by the store.
 */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `work` once every earlier task of `key` has settled. Resolves and rejects as `work` does. */
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
