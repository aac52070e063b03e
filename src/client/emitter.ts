import type { Unsubscribe } from './platform.ts';

/** The listeners of one kind. */
class Listeners<T> extends Set<(event: T) => void> {
  /** Adds a listener. The same function counts once for each call. */
  on(listener: (event: T) => void): Unsubscribe {
    const own = (event: T): void => listener(event);
    this.add(own);
    return () => void this.delete(own);
  }

  /**
   * Calls the current listeners. Skips one that is removed meanwhile; one that is added meanwhile receives the next
   * event.
   */
  call(event: T): void {
    for (const listener of [...this]) if (this.has(listener)) guarded(() => listener(event));
  }
}

/** Listeners by type of event. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Listeners<never>>();

  /** Adds a listener. The same function counts once for each call. */
  on<T extends keyof Events>(type: T, listener: (event: Events[T]) => void): Unsubscribe {
    const listeners = this.#listeners.get(type) ?? new Listeners();
    this.#listeners.set(type, listeners);
    return listeners.on(listener);
  }

  /**
   * Calls the listeners of a type. An error in one is reported as unhandled and does not keep the others from being
   * called.
   */
  emit<T extends keyof Events>(type: T, event: Events[T]): void {
    this.#listeners.get(type)?.call(event as never);
  }
}

/** A value that changes, with listeners that are called once after several changes in the same task. */
export class Observable {
  readonly #listeners = new Listeners<void>();
  #scheduled = false;

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  subscribe(listener: () => void): Unsubscribe {
    return this.#listeners.on(listener);
  }

  /** Calls the listeners in a microtask. */
  changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#listeners.call();
    });
  }
}

/** Calls a function of the page. What it throws must not break the session, so it is thrown again on its own. */
export function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
