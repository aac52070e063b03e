/**
 * A set of functions that are called one after the other. If one throws, the error is reported and the others still
 * run.
 */
export class Listeners<Args extends readonly unknown[]> {
  readonly #listeners = new Set<(...args: Args) => void>();
  readonly #report: (error: unknown) => void;

  /** @param report called with what a listener throws; must not throw */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  /** The number of listeners. */
  get size(): number {
    return this.#listeners.size;
  }

  /** Returns a function that removes the listener. */
  add(listener: (...args: Args) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls every listener. */
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

/** Passes the errors of listeners to the handlers, or emits a process warning if there are none. */
export class ListenerErrors {
  readonly #handlers = new Set<(error: unknown) => void>();
  readonly report = (error: unknown): void => {
    if (this.#handlers.size === 0) process.emitWarning(error instanceof Error ? error : String(error));
    for (const handle of this.#handlers) handle(error);
  };

  /** Adds a handler, which must not throw. Returns a function that removes it. */
  add(handle: (error: unknown) => void): () => void {
    this.#handlers.add(handle);
    return () => this.#handlers.delete(handle);
  }
}
