import type { Test } from 'tap';
import type { Store } from '../../../src/ports/store.ts';

/** What other processes do to the data of a store. */
export interface Outside {
  /** Commits a record as another process does, before this returns. */
  commit(partition: string, key: string, value: string): void;
}

/** Two open stores over the same data, which is empty at the beginning of a case. */
export interface Pair {
  readonly store: Store;
  readonly peer: Store;
  readonly outside: Outside;
}

/** Test cases by name. */
export type Cases = Readonly<Record<string, (t: Test, pair: Pair) => Promise<void>>>;

/** Commits one event with its position as text. */
export function emit(store: Store, stream: string): Promise<void> {
  return store.transact(async (tx) => tx.emit(stream, (seq) => `{"seq":${seq}}`));
}

/**
 * Makes an adapter move what was committed to where it finally keeps it: in the LMDB store, a trim begins with a
 * checkpoint.
 */
export function compact(store: Store): Promise<void> {
  return store.trimEvents('no-such-stream', 0);
}
