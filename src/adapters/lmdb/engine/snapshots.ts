import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { processInfo } from '../../../lib/process-info.ts';
import type { OpenSnapshot } from '../../../ports/store.ts';
import type { Database } from '../env/database.ts';
import { type LogEnvironment, openLog, recordedGeneration } from '../env/log-file.ts';
import { otherReaders } from '../env/readers.ts';
import { DATA_FILE, finishRemovals, logFolder, logGenerations, removeLog } from '../env/store-files.ts';

/**
 * Lists the snapshots of the base table and of the log that other processes hold, and removes logs that have been replaced.
 * Such a log stays while a process has a snapshot of it, so that this process can be named.
 */
export class Snapshots {
  readonly #database: Database;
  /** Logs that have been replaced, by generation. */
  readonly #replaced = new Map<number, LogEnvironment>();
  /** The snapshots found by the last `list` -> when each was first found (`performance.now()`). */
  #firstSeen = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Lists the snapshots that other processes hold, each with the time since the first call that found it. */
  list(): OpenSnapshot[] {
    const now = performance.now();
    const firstSeen = new Map<string, number>();
    const found: OpenSnapshot[] = [];
    const add = (table: OpenSnapshot['table'], file: string, environment: Parameters<typeof otherReaders>[0]): void => {
      for (const { pid, snapshot } of otherReaders(environment)) {
        if (snapshot === null) continue;
        const key = `${file} ${pid} ${snapshot}`;
        const since = this.#firstSeen.get(key) ?? now;
        firstSeen.set(key, since);
        found.push({ table, pid, heldMs: now - since, ...processInfo(pid) });
      }
    };
    add('tree', 'tree', this.#database.root);
    for (const [generation, log] of this.#logs()) add('log', `log ${generation}`, log as unknown as Parameters<typeof otherReaders>[0]);
    this.#firstSeen = firstSeen;
    return found;
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
  *#logs(): Iterable<[generation: number, log: LogEnvironment]> {
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
