import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { open, type Database as Table, type RootDatabase } from 'lmdb';
import { explainFailures } from './commit-failure.ts';
import { checkDatabaseFile } from './file-check.ts';

/** The tables of one LMDB environment on disk. docs/decisions/0001-log-first-store.md tells how they work together. */
export interface Database {
  readonly root: RootDatabase;
  /** The group commits (`encodeBatch`) by position, without a gap; commit-log.ts reads and writes it. */
  readonly log: Table<Buffer, number>;
  /** The folded tree: `partition key` -> value. */
  readonly tree: Table<string, string>;
  /** The folded event log: `environment first-seq` -> events, one a line. */
  readonly segments: Table<string, string>;
  readonly meta: Table<string, string>;
  readonly epoch: string;
  /** The file that holds it all. */
  readonly file: string;
}

/** The one file of a store that matters; the other is made anew when it is opened. */
export const STORE_FILE = 'data.mdb';

/** The layout that this code reads and writes. A change of it comes with a step in `migrations`. */
export const FORMAT_VERSION = 1;

interface Format {
  readonly version: number;
  readonly epoch: string;
}

/** `migrations[n]` brings a database of format n to n + 1, inside one transaction. */
const migrations: Readonly<Record<number, (database: Omit<Database, 'epoch'>) => void>> = {};

/**
 * Opens the database in folder `path`, and makes it where there is none.
 *
 * @param lastFlushed at the last flushed commit instead of the last one: what a power cut leaves
 * @throws when it was written by a newer version, or is no database
 */
export async function openDatabase(path: string, lastFlushed = false): Promise<Database> {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const file = join(path, 'data.mdb');
  checkDatabaseFile(file);
  // A variable, because the typings don't know safeRestore.
  const options = {
    path,
    // Otherwise a folder with a dot in its name is taken for a file.
    noSubdir: false,
    maxDbs: 8,
    maxReaders: 1024,
    // The flush belongs to the commit, inside the writers' lock. Overlapping flushes of several processes can finish out of
    // order, and a writer that is killed then takes the store back to the older mark: answered writes were lost that way.
    overlappingSync: false,
    // One group commit is one transaction by itself already.
    eventTurnBatching: false,
    safeRestore: lastFlushed,
    compression: false,
  };
  const root = open(options);
  explainFailures(root);
  const tables = openTables(root, path);
  try {
    const format = await root.transaction(() => readFormat(tables));
    await root.flushed;
    return { ...tables, epoch: format.epoch };
  } catch (error) {
    await root.close();
    throw error;
  }
}

/** The tables of an environment that is open: who opens one otherwise must find them as they were written. */
export function openTables(root: RootDatabase, path: string): Omit<Database, 'epoch'> {
  return {
    root,
    log: root.openDB<Buffer, number>('log', { encoding: 'binary', keyEncoding: 'uint32' }),
    tree: root.openDB<string, string>('tree', { encoding: 'string' }),
    segments: root.openDB<string, string>('segments', { encoding: 'string' }),
    meta: root.openDB<string, string>('meta', { encoding: 'string' }),
    file: join(path, STORE_FILE),
  };
}

function readFormat(tables: Omit<Database, 'epoch'>): Format {
  const text = tables.meta.get('format');
  const format: Format = text === undefined ? { version: FORMAT_VERSION, epoch: newEpoch() } : (JSON.parse(text) as Format);
  if (format.version > FORMAT_VERSION) {
    throw new Error(
      `The data folder was written by a newer Collab (format ${format.version}; this one knows ${FORMAT_VERSION}). ` +
        'Start the newer version, or restore a backup made by this one.',
    );
  }
  for (let version = format.version; version < FORMAT_VERSION; version++) migrations[version]?.(tables);
  const current = { version: FORMAT_VERSION, epoch: format.epoch };
  if (text !== JSON.stringify(current)) void tables.meta.put('format', JSON.stringify(current));
  return current;
}

function newEpoch(): string {
  return randomBytes(8).toString('hex');
}

/** The key in the tree. A space sorts before every character that names and keys may have, so partitions don't mix. */
export function treeKey(partition: string, key: string): string {
  return `${partition} ${key}`;
}
