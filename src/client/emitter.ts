import type { Unsubscribe } from './platform.ts';

/** Listeners by type of event. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  /** Adds a listener. The same function counts once for each call. */
  on<T extends keyof Events>(type: T, listener: (event: Events[T]) => void): Unsubscribe {
    const own = (event: Events[T]): void => listener(event);
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    listeners.add(own);
    return () => void listeners.delete(own);
  }

  /** Calls the listeners of a type. An error in one is reported as unhandled and does not keep the others from being called. */
  emit<T extends keyof Events>(type: T, event: Events[T]): void {
    for (const listener of this.#listeners.get(type) ?? []) guarded(() => (listener as (value: Events[T]) => void)(event));
  }
}

/** A value that changes, with listeners that are called once after several changes in the same task. */
export class Observable {
  readonly #listeners = new Set<() => void>();
  #scheduled = false;

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  subscribe(listener: () => void): Unsubscribe {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Calls the listeners in a microtask. */
  changed(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      for (const listener of this.#listeners) guarded(listener);
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
