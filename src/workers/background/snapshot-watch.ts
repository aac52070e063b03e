import { readProcessStat } from '../../lib/process/process-stat.ts';
import type { Logger } from '../../observability/log.ts';
import type { OpenSnapshot, StoreOperations } from '../../ports/store-operations.ts';

/** A healthy process keeps a snapshot open for milliseconds; a backup keeps one for as long as it copies. */
const LONG_MS = 10_000;
/**
 * A process that holds a snapshot and has used no processor time for this long is stuck, for example on a disk that
 * hangs.
 */
const STUCK_MS = 60_000;
/**
 * A stuck process is ended when the file of the base table has grown by this much, in bytes, since it held its
 * snapshot.
 */
const END_BYTES = 256 * 1024 * 1024;
/** Time between two reports of the same snapshot. */
const REPORT_MS = 60_000;

/** Options of a watch. */
export interface SnapshotWatchOptions {
  /** Called when a process was ended. */
  readonly onEnded?: (() => void) | undefined;
  /** Default: `END_BYTES`; for tests. */
  readonly endBytes?: number | undefined;
}

/**
 * Reports processes that keep a snapshot of the store open for long, because the store cannot reuse file space
 * meanwhile. Ends those that are stuck while the file of the base table grows
 * (docs/decisions/0035-stuck-readers-and-compaction.md).
 */
export class SnapshotWatch {
  readonly #operations: Pick<StoreOperations, 'openSnapshots' | 'killHolder'>;
  readonly #log: Logger;
  /** By table and pid: how long it had been open at its last report. */
  readonly #reported = new Map<string, number>();
  readonly #options: SnapshotWatchOptions;
  #longOpen: readonly OpenSnapshot[] = [];

  constructor(
    operations: Pick<StoreOperations, 'openSnapshots' | 'killHolder'>,
    log: Logger,
    options: SnapshotWatchOptions = {},
  ) {
    this.#operations = operations;
    this.#log = log;
    this.#options = options;
  }

  /** The snapshots that had been open for over 10 s at the last check. */
  get longOpen(): readonly OpenSnapshot[] {
    return this.#longOpen;
  }

  /** Checks the open snapshots and logs those that need a report. Call it about once a second. */
  check(): void {
    this.#longOpen = this.#operations.openSnapshots().filter(({ heldMs }) => heldMs >= LONG_MS);
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
        'a process keeps a snapshot of the store open, so the store cannot reuse file space and grows: resume ' +
          'the process if it is stopped, or end it',
      );
    }
    for (const snapshot of this.#longOpen) if (this.#mustEnd(snapshot)) this.#end(snapshot);
  }

  #mustEnd({ table, pid, stopped, idleMs, grownBytes }: OpenSnapshot): boolean {
    // The file of the log is bounded by its rotation. The primary watches its workers itself.
    return (
      table === 'tree' &&
      (stopped || idleMs >= STUCK_MS) &&
      grownBytes >= (this.#options.endBytes ?? END_BYTES) &&
      !isOfThisServer(pid)
    );
  }

  #end(snapshot: OpenSnapshot): void {
    const { table, pid, command, stopped, heldMs, grownBytes } = snapshot;
    if (!this.#operations.killHolder(snapshot)) return;
    this.#options.onEnded?.();
    this.#log.error(
      {
        table,
        pid,
        command,
        stopped,
        heldSeconds: Math.round(heldMs / 1_000),
        grownMb: Math.round(grownBytes / 1024 / 1024),
      },
      'a process that did not run kept a snapshot of the store open while the store grew: it has been ' +
        'killed. `collab compact`, or the next start, gives the space back',
    );
  }
}

function isOfThisServer(pid: number): boolean {
  return pid === process.ppid || readProcessStat(pid)?.parent === process.ppid;
}

function keyOf({ table, pid }: OpenSnapshot): string {
  return `${table} ${pid}`;
}
