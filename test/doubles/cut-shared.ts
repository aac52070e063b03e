import { CollabError } from '../../src/model/errors.ts';
import type { Shared } from '../../src/ports/shared.ts';

/** A memory on another machine, as one process reaches it. */
export interface CutShared {
  readonly shared: Shared;
  /** Whether it is out of reach. */
  cut: boolean;
}

/** Puts `memory` on another machine. */
export function cutShared(memory: Shared): CutShared {
  const state = {
    cut: false,
    shared: new Proxy(memory, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return (...args: unknown[]): unknown =>
          state.cut && name !== 'close'
            ? Promise.reject(new CollabError('storage_unavailable', 'out of reach'))
            : Reflect.apply(method, target, args);
      },
    }),
  };
  return state;
}
