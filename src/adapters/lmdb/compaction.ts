import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { mkdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { syncPathSync } from '../../lib/files/durable-files.ts';
import { otherLockHolders } from '../../lib/files/file-locks.ts';
import { DataError } from '../../model/errors.ts';
import { storeErrorOf } from './env/commit-failure.ts';
import { FORMAT_VERSION } from './env/database.ts';
import { OPTIONS } from './env/lmdb-env.ts';
import { checkAccess, checkDatabaseFile } from './env/file-check.ts';
import { countOpen, isOpenHere } from './env/open-envs.ts';
import { openFile } from './env/open-file.ts';
import { OpeningLock } from './env/opening-lock.ts';
import { lastTransaction, otherReaders } from './env/readers.ts';
import { COMPACT_BYTES, COPY_FOLDER, DATA_FILE, LOCK_FILE } from './env/store-files.ts';
import { entriesOf } from './env/table-entries.ts';

/** The tables of the base LMDB environment, by their stored names. */
const TABLES = ['tree', 'segments', 'meta'];
/** Entries per transaction of the copy. */
const BATCH = 5_000;

/** How a compaction is done. */
export interface CompactionOptions {
  /** Compacts only if more than half of the file and more than 256 MiB are free. */
  readonly onlyWhenDue: boolean;
  /** Free space of the disk that must be left beside the copy, in bytes. */
  readonly minFreeBytes: number;
}

/** The result of a compaction. Sizes are those of the file, in bytes. */
export type CompactionResult =
  | { readonly outcome: 'compacted'; readonly before: number; readonly after: number }
  | { readonly outcome: 'not due'; readonly before: number; readonly free: number }
  /** Other processes, of which `pids` are known, have the store open. */
  | { readonly outcome: 'in use'; readonly pids: readonly number[] }
  /** The copy would need `missing` bytes more of free disk space. */
  | { readonly outcome: 'no space'; readonly missing: number };

interface Tables {
  readonly root: RootDatabase;
  readonly tables: readonly Table<Buffer, string>[];
}

/**
 * Replaces the file of the base table by a copy without free space: LMDB reuses free space but never returns it. Copies
 * entry by entry, because the compacting copies of lmdb-js have been reported broken.
 *
 * Call it while no server runs on the data folder. It has no effect if any process has the store open at its end or has
 * written to it in between. A crash at any point leaves either file whole: the copy is flushed, then renamed.
 *
 * @param path folder of the store, which must exist
 * @throws {CollabError} `storage_full` or `storage_failed` if the disk refuses
 * @throws {DataError} if the file is damaged so that entries cannot be found, or is of an older format
 */
export async function compactStore(path: string, options: CompactionOptions): Promise<CompactionResult> {
  try {
    return await compact(path, options);
  } catch (error) {
    throw storeErrorOf(error, path);
  }
}

async function compact(path: string, { onlyWhenDue, minFreeBytes }: CompactionOptions): Promise<CompactionResult> {
  await rm(join(path, COPY_FOLDER), { recursive: true, force: true });
  const file = join(path, DATA_FILE);
  const before = statSync(file).size;
  if (onlyWhenDue && before <= COMPACT_BYTES) return { outcome: 'not due', before, free: 0 };
  if (!isOpenHere(path)) checkAccess(path);
  checkDatabaseFile(file);
  const lock = new OpeningLock(path);
  const source = lock.exclusive(() => openTables(path, {}));
  const uncount = countOpen(path);
  try {
    requireFormat(source);
    const used = usedBytes(source);
    if (onlyWhenDue && before - used <= Math.max(COMPACT_BYTES, before / 2))
      return { outcome: 'not due', before, free: before - used };
    const { bavail, bsize } = await statfs(path);
    const missing = used + minFreeBytes - bavail * bsize;
    if (missing > 0) return { outcome: 'no space', missing };
    const last = lastTransaction(source.root);
    await copyEntries(source, join(path, COPY_FOLDER));
    const pids = lock.exclusive(() => replace(path, source.root, last));
    return pids === null ? { outcome: 'compacted', before, after: statSync(file).size } : { outcome: 'in use', pids };
  } finally {
    await lock.closing(() => source.root.close());
    uncount();
    await rm(join(path, COPY_FOLDER), { recursive: true, force: true });
  }
}

function openTables(path: string, options: { readonly noSync?: true }): Tables {
  const root = openFile({ ...OPTIONS, ...options, path, maxDbs: 8 });
  return { root, tables: TABLES.map((name) => root.openDB<Buffer, string>(name, { encoding: 'binary' })) };
}

function requireFormat({ tables }: Tables): void {
  const text = tables[TABLES.indexOf('meta')]?.get('format')?.toString();
  const { version } = JSON.parse(text ?? '{}') as { version?: number };
  if (version !== FORMAT_VERSION)
    throw new DataError(
      `The store has format ${version ?? 'unknown'}, which can be compacted only after this version has been started once.`,
      'Run `collab start` once, stop the server, then run the command again.',
    );
}

/** The result of `getStats`, for which lmdb-js has no type. */
interface Stats {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
  readonly entryCount: number;
}

function statsOf(table: Pick<Table<Buffer, string> | RootDatabase, 'getStats'>): Stats {
  return table.getStats() as Stats;
}

/** Size of the pages with content, in bytes. */
function usedBytes({ root, tables }: Tables): number {
  const pages = [root, ...tables].map((table) => {
    const { treeBranchPageCount, treeLeafPageCount, overflowPages } = statsOf(table);
    return treeBranchPageCount + treeLeafPageCount + overflowPages;
  });
  return statsOf(root).pageSize * pages.reduce((sum, count) => sum + count, 0);
}

/** Copies all entries to a new LMDB environment in folder `to`, and flushes it. */
async function copyEntries(source: Tables, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  checkAccess(to);
  const copy = openTables(to, { noSync: true });
  try {
    for (const [i, table] of source.tables.entries()) {
      const copied = copy.tables[i] as Table<Buffer, string>;
      let batch: { key: string; value: Buffer }[] = [];
      const write = (): void => {
        copy.root.transactionSync(() => {
          for (const { key, value } of batch) void copied.put(key, value);
        });
        batch = [];
      };
      for await (const entry of entriesOf(table)) if (batch.push(entry) === BATCH) write();
      write();
      const [expected, found] = [statsOf(table).entryCount, statsOf(copied).entryCount];
      if (found !== expected)
        throw new DataError(
          `The store is damaged: its table ${TABLES[i]} has ${expected} entries, of which ${found} can be read. Run \`collab doctor --deep\`, and restore the newest backup (collab restore).`,
        );
    }
  } finally {
    await copy.root.close();
  }
  syncPathSync(join(to, DATA_FILE));
  syncPathSync(to);
}

/**
 * Moves the copy into the place of the file; call it while no other process can open the store. Returns null, or the
 * ids of processes that have it open or have written to it since the transaction `last`, as far as they are known: then
 * it has done nothing.
 */
function replace(path: string, root: RootDatabase, last: number): number[] | null {
  const file = join(path, DATA_FILE);
  root.readerCheck();
  root.resetReadTxn();
  // Readers of other containers are in LMDB's table only, processes that have not read anything have a lock only.
  const pids = [...new Set([...otherReaders(root).map(({ pid }) => pid), ...otherLockHolders(join(path, LOCK_FILE))])];
  if (pids.length > 0 || lastTransaction(root) !== last) return pids;
  const copy = join(path, COPY_FOLDER, DATA_FILE);
  chmodSync(copy, statSync(file).mode & 0o777);
  renameSync(copy, file);
  // It has the number of the last transaction of the old file. The next process creates it from the new one; after a
  // crash before this line too, because LMDB initialises a lock file that no process uses.
  rmSync(join(path, LOCK_FILE));
  syncPathSync(path);
  return null;
}
