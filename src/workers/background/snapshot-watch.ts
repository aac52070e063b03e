import type { Logger } from '../../observability/log.ts';
import type { OpenSnapshot, Store } from '../../ports/store.ts';

/** A process that is well holds a snapshot for milliseconds; a backup of a large store for as long as it copies. */
const LONG_MS = 10_000;
/** Between two reports of the same snapshot. */
const REPORT_MS = 60_000;

/** Reports processes that hold a snapshot of the store for long, since the store's files can't use space again meanwhile. */
export class SnapshotWatch {
  readonly #store: Store;
  readonly #log: Logger;
  /** Table and pid -> for how long it was held when it was reported last. */
  readonly #reported = new Map<string, number>();
  #held: readonly OpenSnapshot[] = [];

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** The snapshots that were held for over 10 s at the last look. */
  get held(): readonly OpenSnapshot[] {
    return this.#held;
  }

  /** Looks what is held now and logs what is new: to be called about once a second. */
  look(): void {
    this.#held = this.#store.openSnapshots().filter(({ heldMs }) => heldMs >= LONG_MS);
    const keys = new Set(this.#held.map(keyOf));
    for (const key of this.#reported.keys()) {
      if (keys.has(key)) continue;
      this.#reported.delete(key);
      this.#log.info({ snapshot: key }, 'a snapshot of the store that was held for long has been released');
    }
    for (const snapshot of this.#held) {
      const { table, pid, command, stopped, heldMs } = snapshot;
      if (heldMs - (this.#reported.get(keyOf(snapshot)) ?? Number.NEGATIVE_INFINITY) < REPORT_MS) continue;
      this.#reported.set(keyOf(snapshot), heldMs);
      this.#log.warn(
        { table, pid, command, stopped, heldSeconds: Math.round(heldMs / 1_000) },
        'a process holds a snapshot of the store, which keeps its files from using space again: let it go on, or end it',
      );
    }
  }
}

function keyOf({ table, pid }: OpenSnapshot): string {
  return `${table} ${pid}`;
}
