import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { openEnvironment } from './environment.ts';
import { migrations } from './migrations.ts';
import { LOG_FOLDER } from './store-files.ts';

/**
 * The two LMDB environments of a store, each with a writers' lock of its own, and the tables in them.
 * docs/decisions/0001-log-first-store.md tells how they work together.
 */
export interface Database {
  /** The group commits (`encodeBatch`) in pieces by their place in the ring; commit-log.ts reads and writes it. */
  readonly log: RootDatabase<Buffer, number>;
  /** The environment of the tables below. */
  readonly root: RootDatabase;
  /** The folded tree: `partition key` -> value. */
  readonly tree: Table<string, string>;
  /** The folded event log: `environment first-seq` -> events, one a line. */
  readonly segments: Table<string, string>;
  readonly meta: Table<string, string>;
  readonly epoch: string;
}

/** The layout that this code reads and writes. A change of it comes with a step in migrations.ts. */
export const FORMAT_VERSION = 2;

interface Format {
  readonly version: number;
  readonly epoch: string;
}

/**
 * Of every environment. A folder with a dot in its name would be taken for a file. A flush belongs to its commit, inside
 * the writers' lock: overlapping flushes of several processes can finish out of order, and a writer that is killed then
 * takes the store back to the older one. And one group commit is one transaction by itself already.
 */
export const OPTIONS = { noSubdir: false, maxReaders: 1024, overlappingSync: false, eventTurnBatching: false, compression: false } as const;

/**
 * Opens the database in folder `path`, and makes it where there is none.
 *
 * @param lastFlushed at the last flushed commit instead of the last one: what a power cut leaves
 * @throws when it was written by a newer version, or is no database
 */
export async function openDatabase(path: string, lastFlushed = false): Promise<Database> {
  const log = openLog(join(path, LOG_FOLDER), lastFlushed);
  try {
    return await openWith(log, path, lastFlushed);
  } catch (error) {
    await log.close();
    throw error;
  }
}

function openLog(path: string, safeRestore: boolean): RootDatabase<Buffer, number> {
  // A variable, because the typings don't know safeRestore.
  const options = { ...OPTIONS, path, safeRestore, encoding: 'binary', keyEncoding: 'uint32' } as const;
  return openEnvironment(options, (log: RootDatabase<Buffer, number>) => log);
}

async function openWith(log: RootDatabase<Buffer, number>, path: string, safeRestore: boolean): Promise<Database> {
  const options = { ...OPTIONS, path, safeRestore, maxDbs: 8 };
  const tables = { ...openEnvironment(options, openTables), log };
  try {
    const format = await migrate(tables);
    return { ...tables, epoch: format.epoch };
  } catch (error) {
    await tables.root.close();
    throw error;
  }
}

/** The tables of a tree that is open: who opens one otherwise must find them as they were written. */
export function openTables(root: RootDatabase): Pick<Database, 'root' | 'tree' | 'segments' | 'meta'> {
  return {
    root,
    tree: root.openDB<string, string>('tree', { encoding: 'string' }),
    segments: root.openDB<string, string>('segments', { encoding: 'string' }),
    meta: root.openDB<string, string>('meta', { encoding: 'string' }),
  };
}

/** Position of the log up to which the tree has everything, as it is written down; undefined before the first fold. */
export function foldedText({ meta }: Pick<Database, 'meta'>): string | undefined {
  return meta.get('folded');
}

/** Brings the database to this version, and returns its format. */
async function migrate(database: Omit<Database, 'epoch'>): Promise<Format> {
  // Before the transaction, in which no table can be opened.
  const steps = Object.entries(migrations).filter(([from]) => Number(from) >= formatOf(database).version).map(([from, prepare]) => [Number(from), prepare(database)] as const);
  const format = await database.root.transaction(() => {
    const found = formatOf(database);
    if (found.version > FORMAT_VERSION) {
      throw new Error(
        `The data folder was written by a newer Collab (format ${found.version}; this one knows ${FORMAT_VERSION}). ` +
          'Start the newer version, or restore a backup made by this one.',
      );
    }
    for (const [from, step] of steps) if (from >= found.version) step();
    const current = { version: FORMAT_VERSION, epoch: found.epoch };
    if (found.version !== FORMAT_VERSION || database.meta.get('format') === undefined) void database.meta.put('format', JSON.stringify(current));
    return current;
  });
  return format;
}

function formatOf({ meta }: Pick<Database, 'meta'>): Format {
  const text = meta.get('format');
  return text === undefined ? { version: FORMAT_VERSION, epoch: randomBytes(8).toString('hex') } : (JSON.parse(text) as Format);
}

/** The key in the tree. A space sorts before every character that names and keys may have, so partitions don't mix. */
export function treeKey(partition: string, key: string): string {
  return `${partition} ${key}`;
}
