import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { open, type Database as Table } from 'lmdb';
import { syncTree } from '../../lib/durable-files.ts';
import { type Database, FORMAT_VERSION, openDatabase, openTables } from './env/database.ts';
import { OPTIONS } from './env/environment.ts';
import { recordMove } from './engine/log-rotation.ts';
import { StoreView } from './engine/store-view.ts';
import { decodeEventChunk } from './engine/event-chunk.ts';
import { DATA_FILE, logFolder, logGenerations, OPENING_FOLDER, storeFiles } from './env/store-files.ts';
import { openLmdbStore } from './store.ts';

/** What a walk through a whole store found. */
export interface StoreSummary {
  /** Version of the layout. */
  readonly format: number;
  /** Name of the log. */
  readonly epoch: string;
  readonly environments: number;
  readonly records: number;
  readonly events: number;
  /** Size of the file. */
  readonly bytes: number;
}

/** Takes one record of a store. */
export type RecordListener = (partition: string, key: string, value: string) => void;

/** The one file of a store at rest, as copies are: its log has been folded. */
export const STORE_FILE = DATA_FILE;
const LOCK_FILE = 'lock.mdb';
const ENVIRONMENTS = 'envs';
/** Records read at once, before other work of the process has its turn. */
const SLICE = 5_000;

/**
 * Copies the store in folder `path` into the empty folder `to`, as it stands at one moment, while any number of
 * processes read and write it. What is copied is on the disk then. Plain copies: compacting ones have been reported broken.
 */
export async function copyStore(path: string, to: string): Promise<void> {
  const database = await openDatabase(path);
  try {
    const view = new StoreView(database);
    // The log may be replaced between the two copies; they are made again then.
    while (!(await copyOnce(database, view, to))) await emptyFolder(to);
  } finally {
    await Promise.all([database.log.close(), database.root.close()]);
  }
  for (const file of storeFiles(to)) await chmod(file, 0o600);
  await foldCopy(to);
  await syncTree(to);
}

/** Copies both environments; returns whether they belong together. */
async function copyOnce(database: Database, view: StoreView, to: string): Promise<boolean> {
  // The copied tree says which log belongs to it.
  await recordMove(database);
  const { root, log, generation } = database;
  const logTo = join(to, logFolder(generation));
  await mkdir(logTo, { recursive: true, mode: 0o700 });
  // The log first. Where a fold goes on between the two, the copied tree has all that the copied log would say.
  await log.backup(logTo, false);
  await root.backup(to, false);
  view.renew();
  return database.generation === generation;
}

async function emptyFolder(path: string): Promise<void> {
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true });
}

/**
 * Brings a copy to the format of this version, and gives its log another name, so that no client resumes in it by the
 * positions of the old one. Returns the name. The caller flushes the file.
 */
export async function renewEpoch(path: string): Promise<string> {
  await foldCopy(path);
  const epoch = randomBytes(8).toString('hex');
  const root = open({ ...OPTIONS, path, maxDbs: 8 });
  try {
    const { meta } = openTables(root);
    const format = JSON.parse(meta.get('format') ?? '{}') as object;
    meta.putSync('format', JSON.stringify({ ...format, epoch }));
  } finally {
    await root.close();
  }
  await rm(join(path, LOCK_FILE), { force: true });
  return epoch;
}

/**
 * Reads every record and event of a copy in folder `path`, which nobody else has open, and leaves nothing behind.
 *
 * @param onRecord called with each record
 * @throws {Error} that says what is wrong with it
 */
export async function inspectStore(path: string, onRecord: RecordListener = () => {}): Promise<StoreSummary> {
  const file = join(path, STORE_FILE);
  const { size: bytes } = await stat(file);
  const root = open({ path, noSubdir: false, readOnly: true, maxDbs: 8, compression: false });
  try {
    const tables = openTables(root);
    const format = JSON.parse(tables.meta.get('format') ?? '{}') as { version?: number; epoch?: string };
    if (format.version === undefined || format.epoch === undefined) throw new Error(`${file} is no store of Collab`);
    if (format.version > FORMAT_VERSION) throw new Error(`${file} was written by a newer Collab (format ${format.version}; this one knows ${FORMAT_VERSION})`);
    return { format: format.version, epoch: format.epoch, ...(await walk(tables, onRecord)), bytes };
  } finally {
    await root.close();
    await rm(join(path, LOCK_FILE), { force: true });
  }
}

/** Folds what the log of a copy says, so that one file is all of it. */
async function foldCopy(path: string): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  try {
    await store.fold();
  } finally {
    await store.close();
  }
  for (const folder of [...logGenerations(path).map(logFolder), OPENING_FOLDER]) await rm(join(path, folder), { recursive: true });
  await rm(join(path, LOCK_FILE), { force: true });
}

/** Counts what there is. */
async function walk({ table, eventChunks }: Pick<Database, 'table' | 'eventChunks'>, onRecord: RecordListener): Promise<Pick<StoreSummary, 'environments' | 'records' | 'events'>> {
  let records = 0;
  let environments = 0;
  for await (const { key, value } of entriesOf(table)) {
    const space = key.indexOf(' ');
    if (space < 0) throw new Error(`a record has the impossible name ${key}`);
    const partition = key.slice(0, space);
    if (partition === ENVIRONMENTS) environments++;
    onRecord(partition, key.slice(space + 1), value);
    records++;
  }
  return { environments, records, events: await countEvents(eventChunks) };
}

/** The entries of a table in order. Other work of the process has its turn now and then. */
async function* entriesOf(table: Table<string, string>): AsyncIterable<{ key: string; value: string }> {
  for (let after: string | undefined; ; await turn()) {
    const from = after;
    const slice = [...table.getRange(from === undefined ? { limit: SLICE } : { start: from, limit: SLICE + 1 })].filter(({ key }) => key !== from);
    yield* slice;
    after = slice.at(-1)?.key;
    if (slice.length < SLICE) return;
  }
}

/** The number of events. Throws unless each segment of a log begins where the one before it ended. */
async function countEvents(eventChunks: Table<string, string>): Promise<number> {
  let events = 0;
  let last = '';
  let next = 0;
  for await (const { key, value } of entriesOf(eventChunks)) {
    const [environmentId = '', first = ''] = key.split(' ');
    if (environmentId === last && Number(first) !== next) throw new Error(`the log of ${environmentId} has a gap before position ${first}`);
    const count = decodeEventChunk(key, value).length;
    last = environmentId;
    next = Number(first) + count;
    events += count;
  }
  return events;
}
