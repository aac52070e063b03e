import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { openEnvironment, OPTIONS, ownCommitsDone } from './environment.ts';
import { type LogEnvironment, openLog, recordedGeneration } from './log-file.ts';
import { type Migrated, migrations } from './migrations.ts';
import { logFolder } from './store-files.ts';

/**
 * The two LMDB environments of a store, each with a writers' lock of its own, and the tables in them.
 * docs/decisions/0001-log-first-store.md tells how they work together.
 */
export interface Database {
  /** Folder of the store. */
  readonly path: string;
  /**
   * The group commits (`encodeBatch`) in pieces by their place in the ring; commit-log.ts reads and writes it. `moveToLog`
   * replaces it by the next generation.
   */
  log: LogEnvironment;
  generation: number;
  /** Whether the environments were opened at their last flushed commit. */
  readonly lastFlushed: boolean;
  /** The environment of the tables below. */
  readonly root: RootDatabase;
  /** The folded tree: `partition key` -> value. */
  readonly table: Table<string, string>;
  /** The folded event log: `environment first-seq` -> events, one a line. */
  readonly eventChunks: Table<string, string>;
  readonly meta: Table<string, string>;
  readonly epoch: string;
}

/** The layout that this code reads and writes. A change of it comes with a step in migrations.ts. */
export const FORMAT_VERSION = 3;

interface Format {
  readonly version: number;
  readonly epoch: string;
}

/**
 * Opens the database in folder `path`, and makes it where there is none.
 *
 * @param lastFlushed at the last flushed commit instead of the last one: what a power cut leaves
 * @throws when it was written by a newer version, or is no database
 */
export async function openDatabase(path: string, lastFlushed = false): Promise<Database> {
  const options = { ...OPTIONS, path, safeRestore: lastFlushed, maxDbs: 8 };
  await ownCommitsDone(path);
  const tables = openEnvironment(options, openTables);
  try {
    const { epoch } = await migrate({ ...tables, path });
    return { ...tables, ...(await openCurrentLog(tables, path, lastFlushed)), path, lastFlushed, epoch };
  } catch (error) {
    await tables.root.close();
    throw error;
  }
}

/** Replaces the log of an open database by another generation, which took over from it; outside of a transaction. */
export function moveToLog(database: Database, generation: number, log = openLog(database.path, generation, database.lastFlushed)): void {
  const previous = database.log;
  database.log = log;
  database.generation = generation;
  void previous.close();
}

async function openCurrentLog(tables: Pick<Database, 'root' | 'meta'>, path: string, lastFlushed: boolean): Promise<Pick<Database, 'log' | 'generation'>> {
  for (;;) {
    tables.root.resetReadTxn();
    const generation = recordedGeneration(tables);
    await ownCommitsDone(join(path, logFolder(generation)));
    const log = openLog(path, generation, lastFlushed);
    // A log that has been replaced is removed: what was opened may have been made anew by this.
    tables.root.resetReadTxn();
    if (recordedGeneration(tables) === generation) return { log, generation };
    await log.close();
  }
}

/** The tables of a tree that is open: who opens one otherwise must find them as they were written. */
export function openTables(root: RootDatabase): Pick<Database, 'root' | 'table' | 'eventChunks' | 'meta'> {
  return {
    root,
    table: root.openDB<string, string>('tree', { encoding: 'string' }),
    eventChunks: root.openDB<string, string>('segments', { encoding: 'string' }),
    meta: root.openDB<string, string>('meta', { encoding: 'string' }),
  };
}

/** Position of the log up to which the tree has everything, as it is written down; undefined before the first fold. */
export function checkpointText({ meta }: Pick<Database, 'meta'>): string | undefined {
  return meta.get('folded');
}

/** Brings the database to this version, and returns its format. */
async function migrate(database: Migrated): Promise<Format> {
  // Before the transaction, in which no table can be opened.
  const { version } = formatOf(database);
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
    if (found.version !== FORMAT_VERSION || database.meta.get('format') === undefined) void database.meta.put('format', JSON.stringify(current));
    return current;
  });
  await step?.done();
  return format;
}

function formatOf({ meta }: Pick<Database, 'meta'>): Format {
  const text = meta.get('format');
  return text === undefined ? { version: FORMAT_VERSION, epoch: randomBytes(8).toString('hex') } : (JSON.parse(text) as Format);
}

/** The key in the tree. A space sorts before every character that names and keys may have, so partitions don't mix. */
export function tableKey(partition: string, key: string): string {
  return `${partition} ${key}`;
}
