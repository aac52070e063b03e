import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { openEnvironment, OPTIONS } from './environment.ts';
import { logFolder } from './store-files.ts';

interface Meta {
  readonly meta: Table<string, string>;
}

/** An LMDB environment that holds one generation of the log: pieces by their place in the ring. */
export type LogEnvironment = RootDatabase<Buffer, number>;

/** Opens a generation of the log, and makes it where there is none. */
export function openLog(path: string, generation: number, safeRestore = false): LogEnvironment {
  // A variable, because the typings don't know safeRestore.
  const options = { ...OPTIONS, path: join(path, logFolder(generation)), safeRestore, encoding: 'binary', keyEncoding: 'uint32' } as const;
  return openEnvironment(options, (log: LogEnvironment) => log);
}

/**
 * Makes a log of a generation whose folder nobody uses yet, and writes to it. What an attempt that was interrupted has left
 * there is removed.
 *
 * @param write runs in a write transaction; it is on the disk when this returns
 */
export function makeLog(path: string, generation: number, write: (log: LogEnvironment) => void): LogEnvironment {
  rmSync(join(path, logFolder(generation)), { recursive: true, force: true });
  const log = openLog(path, generation);
  try {
    log.transactionSync(() => write(log));
    return log;
  } catch (error) {
    void log.close();
    throw error;
  }
}

/**
 * The generation of the log that commits go to, as the tree has it written down. A log that was sealed just before a crash
 * may be one behind: reading it to its end leads on.
 */
export function recordedGeneration({ meta }: Meta): number {
  return Number(meta.get('log') ?? 0);
}

/** Writes down that commits go to a generation of the log; inside a write transaction of the tree. */
export function recordGeneration(database: Meta, generation: number): void {
  if (recordedGeneration(database) < generation) void database.meta.put('log', String(generation));
}

