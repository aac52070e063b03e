import type { EventListener, Store, StoredEvent } from '../../src/ports/store.ts';

/** A store as another worker sees it: its followers hear of events only when told to catch up. */
export interface LaggingStore {
  readonly store: Store;
  /** Holds events back from now on. */
  hold(): void;
  /** Hands on what was held back, and everything from now on. */
  release(): void;
}

export function laggingStore(store: Store): LaggingStore {
  const held: [stream: string, event: StoredEvent | null][] = [];
  const listeners = new Set<EventListener>();
  let holding = false;
  store.follow((stream, event) => {
    if (holding) held.push([stream, event]);
    else for (const listener of listeners) listener(stream, event);
  });
  const follow = (listener: EventListener): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    store: new Proxy(store, {
      get: (target, name) => {
        if (name === 'follow') return follow;
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    }),
    hold: () => {
      holding = true;
    },
    release: () => {
      holding = false;
      for (const [stream, event] of held.splice(0)) for (const listener of listeners) listener(stream, event);
    },
  };
}
