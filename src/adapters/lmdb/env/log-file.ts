import { rmSync } from 'node:fs';
import { join } from 'node:path';
import * as lmdb from 'lmdb';
import type { Database as Table, RootDatabase } from 'lmdb';
import { DEFAULT_BOUNDS } from '../bounds.ts';
import { decodeNumber, encodeNumber } from './checked-value.ts';
import { openLmdbEnv, OPTIONS, SMALL_MAP_BYTES } from './lmdb-env.ts';
import { logFolder } from './store-files.ts';

interface Meta {
  readonly meta: Table<string, string>;
}

/** An LMDB environment that has one generation of the log: WAL records by their index in the ring. */
export type LogFile = RootDatabase<Buffer, number> & {
  /** Of the reads outside of write transactions; absent before the first one. */
  readOptions?: ReadOptions | undefined;
  /** As `StoreBounds.ringRecords`. */
  readonly ringRecords: number;
};

/** A read transaction as lmdb-js implements it; its types have only `done`. */
interface ReadTransaction {
  /** Of the native object. */
  readonly address: number;
  /** Gives the transaction back; it must not be used any more. */
  done(): void;
}

/** Properties that the types of lmdb-js leave out. */
interface Untyped {
  readonly nativeAddon: { readonly resetTxn: (address: number) => void };
}

/** The options of the reads of a log. */
interface ReadOptions {
  readonly transaction: ReadTransaction;
  /** Whether the transaction may have a snapshot. */
  hasSnapshot: boolean;
}

type FastRead = (index: number, options: ReadOptions) => Buffer | undefined;

const { nativeAddon } = lmdb as unknown as Untyped;

/** How a log is opened. */
export interface LogOptions {
  /** As `StoreBounds.ringRecords`; that of a server by default. */
  readonly ringRecords?: number;
  /** As `Database.lastFlushed`. */
  readonly lastFlushed?: boolean;
}

/** Opens a generation of the log, or creates it. */
export function openLog(
  path: string,
  generation: number,
  { ringRecords = DEFAULT_BOUNDS.ringRecords, lastFlushed: safeRestore = false }: LogOptions = {},
): LogFile {
  // A variable, because the type of the parameter lacks safeRestore.
  const options = {
    ...OPTIONS,
    mapSize: SMALL_MAP_BYTES,
    path: join(path, logFolder(generation)),
    safeRestore,
    encoding: 'binary',
    keyEncoding: 'uint32',
  } as const;
  const log = openLmdbEnv(
    options,
    (root: RootDatabase<Buffer, number>) => Object.assign(root, { ringRecords }) satisfies LogFile,
  );
  const close = log.close.bind(log);
  log.close = () => {
    closeLogReads(log);
    return close();
  };
  return log;
}

/**
 * Creates a generation of the log whose folder no process uses yet. Removes what an interrupted attempt has left there.
 *
 * @param write runs in a write transaction, which is on disk when this function returns
 */
export function makeLog(
  path: string,
  generation: number,
  write: (log: LogFile) => void,
  options?: LogOptions,
): LogFile {
  rmSync(join(path, logFolder(generation)), { recursive: true, force: true });
  const log = openLog(path, generation, options);
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

/**
 * Reads a value of the log, valid until the next read: in the write transaction of this process if one is running,
 * otherwise in a snapshot that begins with the first read after `endLogSnapshot`.
 *
 * The read transaction is one of our own. For the one that lmdb-js keeps, it sets a timer and emits an event with each
 * new snapshot, which costs several times as much as a look at the end of the log. Every request takes one.
 */
export function readLogValue(log: LogFile, index: number): Buffer | undefined {
  return (log.getBinaryFast as FastRead).call(log, index, snapshotOf(log));
}

/** The lowest index from `start` on that has a value, in the snapshot of `readLogValue`; undefined if there is none. */
export function nextLogIndex(log: LogFile, start: number): number | undefined {
  const { transaction } = snapshotOf(log);
  const range = { start, limit: 1, transaction } as object;
  for (const index of log.getKeys(range)) return index;
  return undefined;
}

/** Ends the snapshot of `readLogValue` and `nextLogIndex`; no effect if there is none. */
export function endLogSnapshot(log: LogFile): void {
  const { readOptions } = log;
  if (readOptions === undefined || !readOptions.hasSnapshot) return;
  nativeAddon.resetTxn(readOptions.transaction.address);
  readOptions.hasSnapshot = false;
}

/** Ends the read transaction; call it before the log is closed. */
function closeLogReads(log: LogFile): void {
  log.readOptions?.transaction.done();
  log.readOptions = undefined;
}

/** The options of a read, which begins a snapshot unless there is one. */
function snapshotOf(log: LogFile): ReadOptions {
  const options = (log.readOptions ??= ownTransaction(log));
  options.hasSnapshot = true;
  return options;
}

function ownTransaction(log: LogFile): ReadOptions {
  const transaction = log.useReadTransaction() as unknown as ReadTransaction;
  // lmdb-js keeps a transaction that is in use out of its own reads from the next snapshot on.
  log.resetReadTxn();
  return { transaction, hasSnapshot: true };
}
