import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { DEFAULT_BOUNDS, type StoreBounds } from '../bounds.ts';
import { DataError } from '../../../model/errors.ts';
import { type CheckedValue, decodeNumber, encodeNumber, sumOf, valueEncoder } from './checked-value.ts';
import { openLmdbEnv, OPTIONS, ownCommitsDone } from './lmdb-env.ts';
import { type LogFile, type LogOptions, openLog, recordedGeneration } from './log-file.ts';
import { type MigrationTarget, migrations } from './migrations.ts';
import { logFolder } from './store-files.ts';

/**
 * The two LMDB environments of a store, each with a writers' lock of its own, and the tables in them
 * (docs/decisions/0001-log-first-store.md).
 */
export interface Database {
  /** Folder of the store. */
  readonly path: string;
  readonly bounds: StoreBounds;
  /** The write-ahead log, which commit-log.ts reads and writes; `switchLog` replaces it. */
  log: LogFile;
  /** The generation of `log`. */
  generation: number;
  /** Whether the LMDB environments were opened at their last flushed commit instead of the last one. */
  readonly lastFlushed: boolean;
  /** The LMDB environment of the tables below. */
  readonly root: RootDatabase;
  /** The base table: `partition key` -> value. */
  readonly table: Table<CheckedValue, string>;
  /** The event chunks: `stream first-seq` -> events, one per line. */
  readonly eventChunks: Table<string, string>;
  /**
   * `format`: layout version and epoch; `folded`: position of the last checkpoint; `log`: generation of the log;
   * `unchecked`: see checksum-upgrade.ts.
   */
  readonly meta: Table<string, string>;
  /** As `Store.epoch`. */
  readonly epoch: string;
}

/** Version of the layout that this code reads and writes. A change of it needs a step in migrations.ts. */
export const FORMAT_VERSION = 4;

/** Name of the record of the last checkpoint. */
const CHECKPOINT = 'folded';

/** How `openDatabase` opens a database. */
export interface OpenOptions {
  readonly bounds?: Partial<StoreBounds> | undefined;
  readonly lastFlushed?: boolean | undefined;
}

/** The base table of a store, and the folder of the store, in which its logs are. */
type LogTarget = Pick<Database, 'path' | 'root' | 'meta'>;

/** A log that is open. */
type OpenedLog = Pick<Database, 'log' | 'generation'>;

interface Format {
  readonly version: number;
  readonly epoch: string;
}

/**
 * Opens the database in folder `path`, or creates it, and migrates it to the current format.
 *
 * @param options.bounds those that differ from `DEFAULT_BOUNDS`
 * @param options.lastFlushed opens at the last flushed commit instead of the last one, as after a power cut
 * @throws {Error} when it was written by a newer version
 * @throws {DataError} when a file is no database, or another process commits without end
 */
export async function openDatabase(
  path: string,
  { bounds: changed, lastFlushed = false }: OpenOptions = {},
): Promise<Database> {
  const bounds = { ...DEFAULT_BOUNDS, ...changed };
  const options = { ...OPTIONS, path, safeRestore: lastFlushed, maxDbs: 8 };
  await ownCommitsDone(path);
  const tables = openLmdbEnv(options, openTables);
  try {
    const { epoch } = await migrate({ ...tables, path });
    return {
      ...tables,
      ...(await openCurrentLog({ ...tables, path }, { ringRecords: bounds.ringRecords, lastFlushed })),
      path,
      bounds,
      lastFlushed,
      epoch,
    };
  } catch (error) {
    await tables.root.close();
    throw error;
  }
}

/**
 * Replaces the log of an open database by the generation that continues it; outside of a transaction. If that one has
 * been replaced too, by the newest one that is recorded: it has every commit that is not in the base table. Moves to
 * the newest snapshot of the base table.
 *
 * It opens the log synchronously, also while this process has commits under way: those to the log that is replaced fail
 * afterwards, and no process waits for them in order to commit to the one that is opened
 * (docs/decisions/0012-opening-lock.md).
 *
 * @param report called with the error of a log that cannot be closed
 */
export function switchLog(database: Database, generation: number, report: (error: unknown) => void): void {
  for (;;) {
    const opened = openRecordedLog(database, generation, {
      ringRecords: database.bounds.ringRecords,
      lastFlushed: database.lastFlushed,
    });
    const isCurrent = isNewest(database, opened.generation);
    const closing = isCurrent ? replaceLog(database, opened.generation, opened.log) : opened.log.close();
    closing.catch(report);
    if (isCurrent) return;
  }
}

/**
 * Replaces the log of an open database by one that is open and known to continue it. Resolves when the previous one is
 * closed, which waits for the commits to it that are under way.
 */
export async function replaceLog(database: Database, generation: number, log: LogFile): Promise<void> {
  const previous = database.log;
  database.log = log;
  database.generation = generation;
  await previous.close();
}

async function openCurrentLog(target: LogTarget, options: LogOptions): Promise<OpenedLog> {
  for (;;) {
    target.root.resetReadTxn();
    const generation = recordedGeneration(target);
    await ownCommitsDone(join(target.path, logFolder(generation)));
    if (!isNewest(target, generation)) continue;
    const opened = openRecordedLog(target, generation, options);
    if (isNewest(target, opened.generation)) return opened;
    await opened.log.close();
  }
}

/**
 * Opens the newest generation of the log that is recorded, or `generation` if that is later. Holds the snapshot of the
 * base table in which it reads the record until the log is open: no process removes a log that is the newest one in a
 * snapshot (`Snapshots.removeReplaced`). LMDB opens several files one after the other, and a folder that is renamed in
 * between ends the process with an error, or with SIGSEGV (file-check.ts).
 */
function openRecordedLog(target: LogTarget, generation: number, options: LogOptions): OpenedLog {
  target.root.resetReadTxn();
  const snapshot = target.root.useReadTransaction();
  try {
    const newest = Math.max(generation, recordedGeneration(target));
    return { log: openLog(target.path, newest, options), generation: newest };
  } finally {
    snapshot.done();
  }
}

/**
 * Whether no later generation of the log is recorded. If one is, the base table may have been written beyond the end of
 * the log that was just opened.
 */
function isNewest(tables: Pick<Database, 'root' | 'meta'>, generation: number): boolean {
  tables.root.resetReadTxn();
  return recordedGeneration(tables) <= generation;
}

/**
 * Opens the tables of a base LMDB environment, with the options that they are written with. The stored names `tree`
 * (base table) and `segments` (event chunks) are older than the terms that the code uses; renaming them would change
 * the format.
 */
export function openTables(root: RootDatabase): Pick<Database, 'root' | 'table' | 'eventChunks' | 'meta'> {
  return {
    root,
    table: root.openDB<CheckedValue, string>('tree', tableOptions),
    eventChunks: root.openDB<string, string>('segments', { encoding: 'string' }),
    meta: root.openDB<string, string>('meta', { encoding: 'string' }),
  };
}

// A variable, because the type of the parameter wants a function `encode` of values.
const tableOptions = { encoder: valueEncoder } as object;

/**
 * The record of the last checkpoint, which changes with every one; undefined before the first. Its stored name,
 * `folded`, is older than the term that the code uses.
 */
export function checkpointText({ meta }: Pick<Database, 'meta'>): string | undefined {
  return meta.get(CHECKPOINT);
}

/**
 * The position of the log up to which the base table has everything, from the record of the last checkpoint.
 *
 * @throws {DataError} when the record is damaged
 */
export function checkpointPosition(text: string | undefined): number {
  return text === undefined ? 0 : decodeNumber(CHECKPOINT, text);
}

/** Records that the base table has everything up to `position`; inside the write transaction of the checkpoint. */
export function recordCheckpoint({ meta }: Pick<Database, 'meta'>, position: number): void {
  void meta.put(CHECKPOINT, encodeNumber(CHECKPOINT, position));
}

/** Brings the database to the current format, and returns that. */
async function migrate(database: MigrationTarget): Promise<Format> {
  // Prepared before the transaction, because no table can be opened inside it.
  const { version, epoch } = formatOf(database);
  // A process can start although the disk refuses writes.
  if (database.meta.get('format') === formatText({ version: FORMAT_VERSION, epoch })) return { version, epoch };
  const step = version < FORMAT_VERSION ? migrations[version]?.(database) : undefined;
  const format = await database.root.transaction(() => {
    const found = formatOf(database);
    if (found.version > FORMAT_VERSION) {
      throw new Error(
        `The data folder was written by a newer Collab (format ${found.version}; this one knows ${FORMAT_VERSION}). ` +
          'Start the newer version, or restore a backup made by this one.',
      );
    }
    if (found.version < FORMAT_VERSION) step?.run();
    const current = { version: FORMAT_VERSION, epoch: found.epoch };
    if (found.version !== FORMAT_VERSION || database.meta.get('format') === undefined)
      void database.meta.put('format', formatText(current));
    return current;
  });
  await step?.done();
  return format;
}

function formatOf({ meta }: Pick<Database, 'meta'>): Format {
  const text = meta.get('format');
  if (text === undefined) return { version: FORMAT_VERSION, epoch: randomBytes(8).toString('hex') };
  const format = JSON.parse(text) as Format;
  if (format.version === FORMAT_VERSION && text !== formatText(format)) {
    throw new DataError(
      'The store is damaged: its format is corrupted (checksum mismatch). Stop the server, keep a copy of ' +
        'the data folder, and restore the newest backup (collab restore).',
    );
  }
  return format;
}

/** The text of a format, which older and newer versions can read too. */
export function formatText({ version, epoch }: Format): string {
  return JSON.stringify({ version, epoch, check: sumOf('format', `${version} ${epoch}`) });
}

/**
 * The key in the base table. A space sorts before every character of names and keys, so the keys of a partition are
 * adjacent.
 */
export function tableKey(partition: string, key: string): string {
  return `${partition} ${key}`;
}
