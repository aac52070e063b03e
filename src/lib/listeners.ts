/** Functions that are called one after the other, and can't harm each other or who calls them. */
export class Listeners<Args extends readonly unknown[]> {
  readonly #listeners = new Set<(...args: Args) => void>();
  readonly #report: (error: unknown) => void;

  /** @param report takes what a listener throws; must not throw */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Returns the way to stop. */
  add(listener: (...args: Args) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  call(...args: Args): void {
    for (const listener of this.#listeners) {
      try {
        listener(...args);
      } catch (error) {
        this.#report(error);
      }
    }
  }
}

/** Where to report what listeners throw: to those who asked for it, or else as a warning of the process. */
export class Faults {
  readonly #handlers = new Set<(error: unknown) => void>();
  readonly report = (error: unknown): void => {
    if (this.#handlers.size === 0) process.emitWarning(error instanceof Error ? error : String(error));
    for (const handle of this.#handlers) handle(error);
  };

  /** @param handle must not throw. Returns the way to stop. */
  add(handle: (error: unknown) => void): () => void {
    this.#handlers.add(handle);
    return () => this.#handlers.delete(handle);
  }
}
