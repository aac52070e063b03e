import type { Logger } from '../../observability/log.ts';
import type { OpenSnapshot, Store } from '../../ports/store.ts';

/** A healthy process keeps a snapshot open for milliseconds; a backup keeps one for as long as it copies. */
const LONG_MS = 10_000;
/** Time between two reports of the same snapshot. */
const REPORT_MS = 60_000;

/** Reports processes that keep a snapshot of the store open for long, because the store cannot reuse file space meanwhile. */
export class SnapshotWatch {
  readonly #store: Store;
  readonly #log: Logger;
  /** By table and pid: how long it had been open at its last report. */
  readonly #reported = new Map<string, number>();
  #longOpen: readonly OpenSnapshot[] = [];

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** The snapshots that had been open for over 10 s at the last check. */
  get longOpen(): readonly OpenSnapshot[] {
    return this.#longOpen;
  }

  /** Checks the open snapshots and logs those that need a report. Call it about once a second. */
  check(): void {
    this.#longOpen = this.#store.openSnapshots().filter(({ heldMs }) => heldMs >= LONG_MS);
    const keys = new Set(this.#longOpen.map(keyOf));
    for (const key of this.#reported.keys()) {
      if (keys.has(key)) continue;
      this.#reported.delete(key);
      this.#log.info({ snapshot: key }, 'a snapshot of the store that was open for long has been closed');
    }
    for (const snapshot of this.#longOpen) {
      const { table, pid, command, stopped, heldMs } = snapshot;
      if (heldMs - (this.#reported.get(keyOf(snapshot)) ?? Number.NEGATIVE_INFINITY) < REPORT_MS) continue;
      this.#reported.set(keyOf(snapshot), heldMs);
      this.#log.warn(
        { table, pid, command, stopped, heldSeconds: Math.round(heldMs / 1_000) },
        'a process keeps a snapshot of the store open, so the store cannot reuse file space and grows: resume the process if it is stopped, or end it',
      );
    }
  }
}

function keyOf({ table, pid }: OpenSnapshot): string {
  return `${table} ${pid}`;
}
