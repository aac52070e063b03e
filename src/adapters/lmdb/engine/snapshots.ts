import { statSync } from 'node:fs';
import { join } from 'node:path';
import { otherLockHolders } from '../../../lib/files/file-locks.ts';
import { killIfFileOpen } from '../../../lib/files/open-files.ts';
import { processInfo } from '../../../lib/process/process-info.ts';
import { readProcessStat } from '../../../lib/process/process-stat.ts';
import type { OpenSnapshot } from '../../../ports/store-operations.ts';
import type { Database } from '../env/database.ts';
import { recordedGeneration } from '../env/log-file.ts';
import { lastTransaction, otherReaders } from '../env/readers.ts';
import { DATA_FILE, finishRemovals, LOCK_FILE, logFolder, logGenerations, removeLog } from '../env/store-files.ts';

/** The state of a snapshot when it was first seen, and when its process was last seen to run (`performance.now()`). */
interface Sighting {
  readonly firstSeen: number;
  readonly fileBytes: number;
  readonly cpuTicks: number;
  readonly ranAt: number;
}

/**
 * Lists the snapshots of the base table and of the log that other processes hold, and removes logs that have been
 * replaced. Such a log stays while a process of this machine has it open, so that this process can be named: every
 * process that runs closes it within a second, when it finds the seal.
 *
 * It never opens a replaced log: this process, or another one that waits for it, may have a commit to it under way
 * (docs/decisions/0012-opening-lock.md).
 */
export class Snapshots {
  readonly #database: Database;
  /** The snapshots found by the last `list`. */
  #seen = new Map<string, Sighting>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Lists the snapshots that other processes hold, each with the time since the first call that found it. */
  list(): OpenSnapshot[] {
    const now = performance.now();
    const seen = new Map<string, Sighting>();
    const found: OpenSnapshot[] = [];
    const add = (table: OpenSnapshot['table'], folder: string, pid: number, snapshot: number): void => {
      const fileBytes = statSync(join(this.#database.path, folder, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0;
      const key = `${folder} ${pid} ${snapshot}`;
      const cpuTicks = readProcessStat(pid)?.cpuTicks ?? Number.NaN;
      const before = this.#seen.get(key) ?? { firstSeen: now, fileBytes, cpuTicks, ranAt: now };
      const sighting = before.cpuTicks === cpuTicks ? before : { ...before, cpuTicks, ranAt: now };
      seen.set(key, sighting);
      found.push({
        table,
        pid,
        heldMs: now - sighting.firstSeen,
        idleMs: now - sighting.ranAt,
        grownBytes: fileBytes - sighting.fileBytes,
        ...processInfo(pid),
      });
    };
    const { root, log, generation } = this.#database;
    for (const { pid, snapshot } of otherReaders(root)) if (snapshot !== null) add('tree', '', pid, snapshot);
    for (const replaced of this.#replaced())
      for (const pid of this.#openedBy(replaced)) add('log', logFolder(replaced), pid, 0);
    for (const { pid, snapshot } of otherReaders(log))
      if (snapshot !== null) add('log', logFolder(generation), pid, snapshot);
    this.#seen = seen;
    return found;
  }

  /** As `StoreOperations.killHolder`. */
  killHolder({ pid }: OpenSnapshot): boolean {
    // Every process that has the log open has the base table open too.
    return killIfFileOpen(pid, join(this.#database.path, DATA_FILE));
  }

  /**
   * Frees the reader slots of processes that have ended: one that is killed during a read keeps its snapshot until
   * then.
   */
  freeDeadReaders(): void {
    const { root, log } = this.#database;
    root.readerCheck();
    log.readerCheck();
  }

  /**
   * Removes replaced logs that no other process of this machine has open, or is about to open. One of another container
   * keeps its files open without their names.
   */
  removeReplaced(): void {
    const { path } = this.#database;
    finishRemovals(path);
    const recorded = recordedGeneration(this.#database);
    const replaced = this.#replaced().filter((generation) => generation < recorded);
    // In this order: a process that opens a log holds its snapshot until it has the log open (`openRecordedLog`).
    if (replaced.length === 0 || this.#hasOlderReaders()) return;
    for (const generation of replaced) if (this.#openedBy(generation).length === 0) removeLog(path, generation);
  }

  /**
   * Whether another process has a snapshot of the base table that may lack what this process has just read from it: in
   * such a snapshot a replaced log can be the newest one.
   */
  #hasOlderReaders(): boolean {
    const { root } = this.#database;
    const last = lastTransaction(root);
    return otherReaders(root).some(({ snapshot }) => snapshot !== null && snapshot < last);
  }

  /** The generations before the current one that still have a folder. */
  #replaced(): readonly number[] {
    return logGenerations(this.#database.path).filter((generation) => generation < this.#database.generation);
  }

  /** The other processes that have a generation of the log open: LMDB has its lock file locked until then. */
  #openedBy(generation: number): readonly number[] {
    return otherLockHolders(join(this.#database.path, logFolder(generation), LOCK_FILE));
  }
}
