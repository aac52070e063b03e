import { randomBytes } from 'node:crypto';
import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asBinary, type Database as Table } from 'lmdb';
import { messageOf } from '../../lib/thrown.ts';
import { DataError } from '../../model/errors.ts';
import { syncTree } from '../../lib/files/durable-files.ts';
import { makeFolder } from '../../lib/files/make-folder.ts';
import { type CheckedValue, encodeValue, textOfValue } from './env/checked-value.ts';
import { type Database, FORMAT_VERSION, formatText, openDatabase, openTables, tableKey } from './env/database.ts';
import { storeErrorOf } from './env/commit-failure.ts';
import { checkAccess } from './env/file-check.ts';
import { OPTIONS } from './env/lmdb-env.ts';
import { openFile } from './env/open-file.ts';
import type { StoreBounds } from './bounds.ts';
import { recordRotation } from './engine/log-rotation.ts';
import { StoreView } from './engine/store-view.ts';
import { decodeEventChunk } from './engine/event-chunk.ts';
import { DATA_FILE, LOCK_FILE, logFolder, logGenerations, OPENING_FOLDER, storeFiles } from './env/store-files.ts';
import { entriesOf } from './env/table-entries.ts';
import { MOVE_KEY, MOVES } from '../../model/move.ts';
import { requireNotMoved } from './require-not-moved.ts';
import { openLmdbStore } from './store.ts';
import type { CopiedRecords, RecordListener, StoreSummary } from '../../ports/store-operations.ts';

/** As `StoreCopies.STORE_FILE`: the log of a copy is empty after a checkpoint. */
export const STORE_FILE = DATA_FILE;
const ENVIRONMENTS = 'envs';

/**
 * As `StoreCopies.copyStore`. It does not use LMDB's compacting copies, which have been reported broken.
 *
 * @param bounds with which the store is used, if not with those of a server
 */
export function copyStore(path: string, to: string, bounds?: Partial<StoreBounds>): Promise<void> {
  return explaining(to, () => copyTo(path, to, bounds));
}

async function copyTo(path: string, to: string, bounds?: Partial<StoreBounds>): Promise<void> {
  const database = await openDatabase(path, { bounds });
  try {
    const view = new StoreView(database);
    requireNotMoved(path, view.get(MOVES, MOVE_KEY));
    // If the log is rotated between the copies of its two LMDB environments, both are copied again.
    while (!(await copyOnce(database, view, to))) await emptyFolder(to);
  } finally {
    await Promise.all([database.log.close(), database.root.close()]);
  }
  for (const file of storeFiles(to)) await chmod(file, 0o600);
  await checkpointCopy(to, bounds);
  await syncTree(to);
}

/** Copies both LMDB environments; returns whether the copies belong together. */
async function copyOnce(database: Database, view: StoreView, to: string): Promise<boolean> {
  // The copied base table must name the log that belongs to it.
  await recordRotation(database);
  const { root, log, generation } = database;
  const logTo = join(to, logFolder(generation));
  await makeFolder(logTo);
  // The log first: after a checkpoint in between, the copied base table has everything that the copied log had.
  await copyFile(log, logTo);
  await copyFile(root, to);
  view.renew();
  return database.generation === generation;
}

async function copyFile(lmdbEnv: Pick<Database['root'], 'backup'>, to: string): Promise<void> {
  try {
    await lmdbEnv.backup(to, false);
  } catch (error) {
    // lmdb-js gives only the text of the error of the system.
    throw new DataError(
      `The store cannot be copied to ${to}: ${messageOf(error)}.`,
      'See how much space is free there, and look for errors of the disk in the kernel log (dmesg); then run the command again.',
    );
  }
}

async function emptyFolder(path: string): Promise<void> {
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true });
}

/**
 * As `StoreCopies.renewEpoch`.
 *
 * @param bounds as for `copyStore`
 */
export function renewEpoch(
  path: string,
  change: (records: CopiedRecords) => void = () => {},
  bounds?: Partial<StoreBounds>,
): Promise<string> {
  return explaining(path, () => renew(path, change, bounds));
}

async function renew(
  path: string,
  change: (records: CopiedRecords) => void,
  bounds?: Partial<StoreBounds>,
): Promise<string> {
  await checkpointCopy(path, bounds);
  const epoch = randomBytes(8).toString('hex');
  checkAccess(path);
  const root = openFile({ ...OPTIONS, path, maxDbs: 8 });
  try {
    const { meta, table } = openTables(root);
    change({
      get: (partition, key) => {
        const name = tableKey(partition, key);
        const value = table.get(name);
        return value === undefined ? undefined : textOfValue(name, value);
      },
      put: (partition, key, value) => {
        const name = tableKey(partition, key);
        table.putSync(name, asBinary(encodeValue(name, Buffer.from(value))) as unknown as CheckedValue);
      },
    });
    meta.putSync('format', formatText({ version: FORMAT_VERSION, epoch }));
  } finally {
    await root.close();
  }
  await rm(join(path, LOCK_FILE), { force: true });
  return epoch;
}

/** As `StoreCopies.inspectStore`. */
export function inspectStore(path: string, onRecord: RecordListener = () => {}): Promise<StoreSummary> {
  return explaining(path, () => inspect(path, onRecord));
}

/**
 * Runs work on the copy in folder `path`, whose errors of the disk become refusals (`storage_full`, `storage_failed`)
 * with a path.
 */
async function explaining<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw storeErrorOf(error, path);
  }
}

async function inspect(path: string, onRecord: RecordListener): Promise<StoreSummary> {
  const file = join(path, STORE_FILE);
  const { size: bytes } = await stat(file);
  const root = openFile({ path, noSubdir: false, readOnly: true, maxDbs: 8, compression: false });
  try {
    const tables = openTables(root);
    const format = JSON.parse(tables.meta.get('format') ?? '{}') as { version?: number; epoch?: string };
    if (format.version === undefined || format.epoch === undefined) throw new Error(`${file} is no store of Collab`);
    if (format.version > FORMAT_VERSION)
      throw new Error(
        `${file} was written by a newer Collab (format ${format.version}; this one knows ${FORMAT_VERSION})`,
      );
    return { format: format.version, epoch: format.epoch, ...(await walk(tables, onRecord)), bytes };
  } finally {
    await root.close();
    await rm(join(path, LOCK_FILE), { force: true });
  }
}

/** Does a checkpoint of a copy and removes its log, so that it is one file. */
async function checkpointCopy(path: string, bounds?: Partial<StoreBounds>): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0, bounds });
  try {
    await store.checkpoint();
  } finally {
    await store.close();
  }
  for (const folder of [...logGenerations(path).map(logFolder), OPENING_FOLDER])
    await rm(join(path, folder), { recursive: true });
  await rm(join(path, LOCK_FILE), { force: true });
}

/** Reads and counts everything. */
async function walk(
  { table, eventChunks }: Pick<Database, 'table' | 'eventChunks'>,
  onRecord: RecordListener,
): Promise<Pick<StoreSummary, 'environments' | 'records' | 'events'>> {
  let records = 0;
  let environments = 0;
  for await (const { key, value } of entriesOf(table)) {
    const space = key.indexOf(' ');
    if (space < 0) throw new Error(`a record has the impossible name ${key}`);
    const partition = key.slice(0, space);
    if (partition === ENVIRONMENTS) environments++;
    onRecord(partition, key.slice(space + 1), textOfValue(key, value));
    records++;
  }
  return { environments, records, events: await countEvents(eventChunks) };
}

/** Counts the events. Throws unless each chunk of a stream begins where the chunk before it ended. */
async function countEvents(eventChunks: Table<string, string>): Promise<number> {
  let events = 0;
  let last = '';
  let next = 0;
  for await (const { key, value } of entriesOf(eventChunks)) {
    const [stream = '', first = ''] = key.split(' ');
    if (stream === last && Number(first) !== next)
      throw new Error(`the stream ${stream} has a gap before position ${first}`);
    const count = decodeEventChunk(key, value).length;
    last = stream;
    next = Number(first) + count;
    events += count;
  }
  return events;
}
