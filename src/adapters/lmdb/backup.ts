import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { open, type Database as Table } from 'lmdb';
import { type Database, FORMAT_VERSION, openDatabase, openTables, STORE_FILE, treeKey } from './database.ts';
import { Replica } from './replica.ts';

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

export { STORE_FILE };
const LOCK_FILE = 'lock.mdb';
const ENVIRONMENTS = 'envs';

/**
 * Copies the store in folder `path` into the empty folder `to`, as it stands at one moment, while any number of
 * processes read and write it. A plain copy: compacting ones have been reported broken.
 */
export async function copyStore(path: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  const { root } = await openDatabase(path);
  try {
    await root.backup(to, false);
  } finally {
    await root.close();
  }
  await chmod(join(to, STORE_FILE), 0o600);
  await settleCopy(to);
}

/** Gives the log of a store another name, so that no client resumes in it by the positions of the old one. Returns the name. */
export async function renewEpoch(path: string): Promise<string> {
  const epoch = randomBytes(8).toString('hex');
  await change(path, (meta) => {
    const format = JSON.parse(meta.get('format') ?? '{}') as object;
    meta.putSync('format', JSON.stringify({ ...format, epoch }));
  });
  return epoch;
}

/**
 * Reads every record and event of the store in folder `path`, which nobody else has open, and leaves nothing behind.
 *
 * @throws {Error} that says what is wrong with it
 */
export async function inspectStore(path: string): Promise<StoreSummary> {
  const file = join(path, STORE_FILE);
  const { size: bytes } = await stat(file);
  const root = open({ path, noSubdir: false, readOnly: true, maxDbs: 8, compression: false });
  try {
    const tables = openTables(root, path);
    const format = JSON.parse(tables.meta.get('format') ?? '{}') as { version?: number; epoch?: string };
    if (format.version === undefined || format.epoch === undefined) throw new Error(`${file} is no store of Collab`);
    if (format.version > FORMAT_VERSION) throw new Error(`${file} was written by a newer Collab (format ${format.version}; this one knows ${FORMAT_VERSION})`);
    return { format: format.version, epoch: format.epoch, ...walk({ ...tables, epoch: format.epoch }), bytes };
  } finally {
    await root.close();
    await rm(join(path, LOCK_FILE), { force: true });
  }
}

/**
 * Makes the copy's last commit its last flushed one. A copy holds what was committed and not yet flushed, and beside it
 * the mark of an earlier flush, whose pages may have been written over while it was made: where the machine has been
 * started since, or is another, the store would open at that mark.
 */
async function settleCopy(path: string): Promise<void> {
  await change(path, (meta) => meta.putSync('copied', new Date().toISOString()));
}

/** Changes a store that nobody else has open, flushed. */
async function change(path: string, work: (meta: Table<string, string>) => void): Promise<void> {
  // Without overlapping flushes a commit is a flushed one, and the store opens at the last commit whatever it is marked as.
  const root = open({ path, noSubdir: false, maxDbs: 8, overlappingSync: false, compression: false });
  try {
    const meta = root.openDB<string, string>('meta', { encoding: 'string' });
    root.transactionSync(() => work(meta));
  } finally {
    await root.close();
  }
  await rm(join(path, LOCK_FILE), { force: true });
}

/** Counts what there is: the folded tree, and over it what the log says since. */
function walk(database: Database): Pick<StoreSummary, 'environments' | 'records' | 'events'> {
  const replica = new Replica(database);
  let records = 0;
  for (const { key } of database.tree.getRange({})) {
    if (!key.includes(' ')) throw new Error(`a record has the impossible name ${key}`);
    records++;
  }
  for (const [partition, key, { slice }] of replica.overlay.all()) {
    const folded = database.tree.get(treeKey(partition, key)) !== undefined;
    if (slice === undefined) records -= folded ? 1 : 0;
    else records += folded ? 0 : 1;
  }
  checkSegments(database.segments);
  let events = 0;
  for (const environmentId of replica.events.environments()) {
    events += replica.events.lastCommitted(environmentId) - replica.events.oldest(environmentId) + 1;
  }
  return { environments: replica.range(ENVIRONMENTS, {}).length, records, events };
}

/** Throws unless each segment of a log begins where the one before it ended. */
function checkSegments(segments: Table<string, string>): void {
  let last = '';
  let next = 0;
  for (const { key, value } of segments.getRange({})) {
    const [environmentId = '', first = ''] = key.split(' ');
    if (environmentId === last && Number(first) !== next) throw new Error(`the log of ${environmentId} has a gap before position ${first}`);
    last = environmentId;
    next = Number(first) + value.split('\n').length;
  }
}
