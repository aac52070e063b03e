import { AsyncLocalStorage } from 'node:async_hooks';

/** One for all scopes: Node.js 20 copies the value of each storage that was ever used to each promise. */
const values = new AsyncLocalStorage<ReadonlyMap<object, unknown>>();

/** A value for the calls that `run` makes and all that they cause, as `AsyncLocalStorage` has. */
export class Scope<T> {
  /** The value of the innermost `run` that the current code belongs to; undefined outside. */
  get(): T | undefined {
    return values.getStore()?.get(this) as T | undefined;
  }

  /** Calls `work`, to which `get` returns `value`, and returns its result. */
  run<R>(value: T, work: () => R): R {
    return values.run(new Map([...(values.getStore() ?? []), [this, value]]), work);
  }
}
