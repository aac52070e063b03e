import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { decodeNumber, encodeNumber } from './checked-value.ts';
import { openEnvironment, OPTIONS } from './environment.ts';
import { logFolder } from './store-files.ts';

interface Meta {
  readonly meta: Table<string, string>;
}

/** An LMDB environment that has one generation of the log: WAL records by their index in the ring. */
export type LogEnvironment = RootDatabase<Buffer, number>;

/** Opens a generation of the log, or creates it. */
export function openLog(path: string, generation: number, safeRestore = false): LogEnvironment {
  // A variable, because the type of the parameter lacks safeRestore.
  const options = { ...OPTIONS, path: join(path, logFolder(generation)), safeRestore, encoding: 'binary', keyEncoding: 'uint32' } as const;
  return openEnvironment(options, (log: LogEnvironment) => log);
}

/**
 * Creates a generation of the log whose folder no process uses yet. Removes what an interrupted attempt has left there.
 *
 * @param write runs in a write transaction, which is on disk when this function returns
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
 * The generation of the log that commits go to, as recorded beside the base table. After a crash right after a log was
 * sealed it may be one behind: a process that reads that log to its end finds the seal.
 */
export function recordedGeneration({ meta }: Meta): number {
  const text = meta.get('log');
  return text === undefined ? 0 : decodeNumber('log', text);
}

/** Records that commits go to a generation of the log; inside a write transaction of the base table. */
export function recordGeneration(database: Meta, generation: number): void {
  if (recordedGeneration(database) < generation) void database.meta.put('log', encodeNumber('log', generation));
}
