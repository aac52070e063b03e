import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Budget, NewSharedRecord, RateLimitResult, Shared, SharedRecord } from '../../src/ports/shared.ts';

type Method = keyof Shared;

/** Event loop iterations before a call takes effect, and again before it is answered. */
const ITERATIONS = 3;

/**
 * Shared memory that answers late, like one over a network with a single connection: a call takes effect some event
 * loop iterations after it was made, in the order of the calls, and is answered some iterations later. `close` leaves
 * the memory behind it open.
 */
export class DelayedShared implements Shared {
  readonly #shared: Shared;
  #last: Promise<unknown> = Promise.resolve();
  /** The method whose calls wait, and what they wait for. */
  #held: { readonly method: Method; readonly released: Promise<void>; readonly reached: () => void } | null = null;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  /**
   * Lets the next call of a method wait, and all later calls of any method, until `release`. `reached` resolves when it
   * is made.
   */
  hold(method: Method): { readonly reached: Promise<void>; readonly release: () => void } {
    let release = (): void => {};
    let reached = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const made = new Promise<void>((resolve) => (reached = resolve));
    this.#held = { method, released, reached };
    return { reached: made, release };
  }

  hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult> {
    return this.#delayed('hit', () => this.#shared.hit(key, limit, windowMs));
  }

  spend(key: string, budget: Budget): Promise<RateLimitResult> {
    return this.#delayed('spend', () => this.#shared.spend(key, budget));
  }

  sweep(idleMs: number): Promise<void> {
    return this.#delayed('sweep', () => this.#shared.sweep(idleMs));
  }

  beginLease(owner: string): Promise<void> {
    return this.#delayed('beginLease', () => this.#shared.beginLease(owner));
  }

  renewLease(owner: string): Promise<boolean> {
    return this.#delayed('renewLease', () => this.#shared.renewLease(owner));
  }

  endLease(owner: string, keepRecordsMs: number): Promise<void> {
    return this.#delayed('endLease', () => this.#shared.endLease(owner, keepRecordsMs));
  }

  count(key: string, owner: string, delta: number): Promise<number> {
    return this.#delayed('count', () => this.#shared.count(key, owner, delta));
  }

  total(key: string): Promise<number> {
    return this.#delayed('total', () => this.#shared.total(key));
  }

  put(record: NewSharedRecord): Promise<void> {
    return this.#delayed('put', () => this.#shared.put(record));
  }

  delete(key: string, name: string): Promise<void> {
    return this.#delayed('delete', () => this.#shared.delete(key, name));
  }

  list(key: string): Promise<SharedRecord[]> {
    return this.#delayed('list', () => this.#shared.list(key));
  }

  get(key: string, name: string): Promise<SharedRecord | undefined> {
    return this.#delayed('get', () => this.#shared.get(key, name));
  }

  maintain(): Promise<void> {
    return this.#delayed('maintain', () => this.#shared.maintain());
  }

  close(): Promise<void> {
    return this.#delayed('close', () => Promise.resolve());
  }

  async #delayed<T>(method: Method, call: () => Promise<T>): Promise<T> {
    const effect = Promise.all([pause(), this.#last, this.#waitFor(method)]).then(call);
    this.#last = effect.catch(() => undefined);
    try {
      return await effect;
    } finally {
      await pause();
    }
  }

  #waitFor(method: Method): Promise<void> | undefined {
    const held = this.#held;
    if (held?.method !== method) return undefined;
    this.#held = null;
    held.reached();
    return held.released;
  }
}

async function pause(): Promise<void> {
  for (let i = 0; i < ITERATIONS; i++) await nextIteration();
}
