import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { killIfFileOpen } from '../../../lib/files/open-files.ts';
import { processInfo } from '../../../lib/process/process-info.ts';
import { readProcessStat } from '../../../lib/process/process-stat.ts';
import type { OpenSnapshot } from '../../../ports/store.ts';
import type { Database } from '../env/database.ts';
import { type LogFile, openLog, recordedGeneration } from '../env/log-file.ts';
import { otherReaders } from '../env/readers.ts';
import { DATA_FILE, finishRemovals, logFolder, logGenerations, removeLog } from '../env/store-files.ts';

/** The state of a snapshot when it was first seen, and when its process was last seen to run (`performance.now()`). */
interface Sighting {
  readonly firstSeen: number;
  readonly fileBytes: number;
  readonly cpuTicks: number;
  readonly ranAt: number;
}

/**
 * Lists the snapshots of the base table and of the log that other processes hold, and removes logs that have been replaced.
 * Such a log stays while a process has a snapshot of it, so that this process can be named.
 */
export class Snapshots {
  readonly #database: Database;
  /** Logs that have been replaced, by generation. */
  readonly #replaced = new Map<number, LogFile>();
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
    const add = (table: OpenSnapshot['table'], folder: string, lmdbEnv: Parameters<typeof otherReaders>[0]): void => {
      const fileBytes = statSync(join(this.#database.path, folder, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0;
      for (const { pid, snapshot } of otherReaders(lmdbEnv)) {
        if (snapshot === null) continue;
        const key = `${folder} ${pid} ${snapshot}`;
        const cpuTicks = readProcessStat(pid)?.cpuTicks ?? Number.NaN;
        const before = this.#seen.get(key) ?? { firstSeen: now, fileBytes, cpuTicks, ranAt: now };
        const sighting = before.cpuTicks === cpuTicks ? before : { ...before, cpuTicks, ranAt: now };
        seen.set(key, sighting);
        found.push({ table, pid, heldMs: now - sighting.firstSeen, idleMs: now - sighting.ranAt, grownBytes: fileBytes - sighting.fileBytes, ...processInfo(pid) });
      }
    };
    add('tree', '', this.#database.root);
    for (const [generation, log] of this.#logs()) add('log', logFolder(generation), log as unknown as Parameters<typeof otherReaders>[0]);
    this.#seen = seen;
    return found;
  }

  /** As `Store.killHolder`. */
  killHolder({ pid }: OpenSnapshot): boolean {
    // Every process that has the log open has the base table open too.
    return killIfFileOpen(pid, join(this.#database.path, DATA_FILE));
  }

  /** Frees the reader slots of processes that have ended: one that is killed during a read keeps its snapshot until then. */
  freeDeadReaders(): void {
    const { root, log } = this.#database;
    root.readerCheck();
    log.readerCheck();
    for (const replaced of this.#replaced.values()) replaced.readerCheck();
  }

  /** Removes replaced logs of which no process has a snapshot. */
  async removeReplaced(): Promise<void> {
    const { path } = this.#database;
    finishRemovals(path);
    for (const [generation, log] of this.#logs()) {
      if (generation >= recordedGeneration(this.#database) || generation >= this.#database.generation) continue;
      log.readerCheck();
      if (otherReaders(log).some(({ snapshot }) => snapshot !== null)) continue;
      this.#replaced.delete(generation);
      await log.close();
      removeLog(path, generation);
    }
  }

  /** Closes the replaced logs. */
  async close(): Promise<void> {
    await Promise.all([...this.#replaced.values()].map((log) => log.close()));
    this.#replaced.clear();
  }

  /** The current log and those before it that still have a file. */
  *#logs(): Iterable<[generation: number, log: LogFile]> {
    const { path, generation: current, log } = this.#database;
    for (const generation of logGenerations(path)) {
      if (generation >= current || !existsSync(join(path, logFolder(generation), DATA_FILE))) continue;
      let replaced = this.#replaced.get(generation);
      if (replaced === undefined) this.#replaced.set(generation, (replaced = openLog(path, generation)));
      yield [generation, replaced];
    }
    yield [current, log];
  }
}
