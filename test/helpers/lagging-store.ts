import type { EventListener, Growth, Store, StoredEvent } from '../../src/ports/store.ts';

/** A store as another worker sees it: its followers receive events late. */
export interface LaggingStore {
  readonly store: Store;
  /** The arguments of the calls of `poll`. */
  readonly polls: (Growth | null | undefined)[];
  /** Holds events back from now on, until the next `poll`, and again after that. */
  hold(): void;
  /** Forgets what was held back, as a process does that was stopped until it was deleted. */
  forget(): void;
  /** Hands on what was held back, and everything from now on. */
  release(): void;
}

export function laggingStore(store: Store): LaggingStore {
  const held: [stream: string, event: StoredEvent | null][] = [];
  const listeners = new Set<EventListener>();
  const polls: (Growth | null | undefined)[] = [];
  let holding = false;
  const deliver = (): void => {
    for (const [stream, event] of held.splice(0)) for (const listener of listeners) listener(stream, event);
  };
  const poll = (growth?: Growth | null): void => {
    polls.push(growth);
    store.poll(growth);
    deliver();
  };
  store.follow((stream, event) => {
    // A copy, because the text of an event may be read only while its follower is called.
    if (holding) held.push([stream, event && { seq: event.seq, text: event.text }]);
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
        if (name === 'poll') return poll;
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    }),
    polls,
    hold: () => {
      holding = true;
    },
    forget: () => void held.splice(0),
    release: () => {
      holding = false;
      deliver();
    },
  };
}
