import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Key, RootDatabase, RootDatabaseOptionsWithPath } from 'lmdb';
import { syncPathSync } from '../../../lib/files/durable-files.ts';
import { makeFolderSync } from '../../../lib/files/make-folder.ts';
import { awaken } from '../../../lib/process/lost-wake-ups.ts';
import { endProcess, explainFailures, storeErrorOf } from './commit-failure.ts';
import { DiskGate } from './disk-gate.ts';
import { checkAccess, checkDatabaseFile } from './file-check.ts';
import { countOpen, isOpenHere } from './open-envs.ts';
import { openFile } from './open-file.ts';
import { OpeningLock } from './opening-lock.ts';
import { DATA_FILE } from './store-files.ts';

/**
 * The address space for a file, in bytes; the file itself is as large as its content. As shipped by lmdb-js 3.5.6, LMDB
 * enlarges a map by `mdb_env_set_mapsize` in any thread that needs it, without a lock. When the write thread and the
 * main thread do that at once, LMDB notes the old address with the new size, and closing the file then unmaps what lies
 * behind it, such as the base table: the process ends by SIGSEGV at a later read. So no map is ever enlarged, except
 * that of a base table of more than this.
 */
const MAP_BYTES = 64 * 1024 ** 3;

/** As `MAP_BYTES`, of a log or the shared memory: a log is replaced long before it has this size. */
export const SMALL_MAP_BYTES = 4 * 1024 ** 3;

/**
 * Options of every LMDB environment. `noSubdir`: by default a folder with a dot in its name is treated as a file.
 * `overlappingSync`: a commit is flushed inside the writers' lock, because overlapping flushes of several processes can
 * finish out of order, and a writer that is killed then takes the store back to the older commit. `eventTurnBatching`:
 * a group commit is one transaction already.
 */
export const OPTIONS = {
  noSubdir: false,
  maxReaders: 1024,
  overlappingSync: false,
  eventTurnBatching: false,
  compression: false,
  mapSize: MAP_BYTES,
} as const;

/** Pending commits of this process, by the folder of their LMDB environment. */
const pendingCommits = new Map<string, Set<Promise<unknown>>>();

/**
 * Resolves when this process has no pending commit to the LMDB environment in folder `path`. Await it right before
 * opening an LMDB environment that this process may have open already. Otherwise they can deadlock: the write thread of
 * lmdb-js waits for the main thread while it holds LMDB's writers' lock, and the main thread, which opens, waits for
 * that lock.
 */
export async function ownCommitsDone(path: string): Promise<void> {
  for (let pending = pendingCommits.get(path); pending !== undefined; pending = pendingCommits.get(path))
    await Promise.allSettled(pending);
}

function track(path: string, commit: Promise<unknown>): void {
  const pending = pendingCommits.get(path) ?? new Set();
  pendingCommits.set(path, pending.add(commit));
  const forget = (): void => {
    pending.delete(commit);
    if (pending.size === 0) pendingCommits.delete(path);
  };
  void commit.then(forget, forget);
}

/**
 * Opens the LMDB environment in folder `options.path`, or creates it. Other processes may have it open. Write to it
 * only inside `transaction` and `transactionSync` of the LMDB environment, never by a `put` outside of them: only these
 * two exclude commits while another process opens it (opening-lock.ts). Its `readerCheck` also frees the dead readers
 * of that lock.
 *
 * @param openTables opens the tables of the LMDB environment, which may write
 * @returns the result of `openTables`
 * @throws {DataError} when the file is no database, or another process commits without end
 * @throws {CollabError} `storage_full` or `storage_failed` when the disk refuses
 */
export function openLmdbEnv<V, K extends Key, T>(
  options: RootDatabaseOptionsWithPath & { path: string },
  openTables: (root: RootDatabase<V, K>) => T,
): T {
  try {
    return openGuarded(options, openTables);
  } catch (error) {
    throw storeErrorOf(error, options.path);
  }
}

function openGuarded<V, K extends Key, T>(
  options: RootDatabaseOptionsWithPath & { path: string },
  openTables: (root: RootDatabase<V, K>) => T,
): T {
  makeFolderSync(options.path);
  const file = join(options.path, DATA_FILE);
  const isNew = !existsSync(file);
  if (!isOpenHere(options.path)) checkAccess(options.path);
  checkDatabaseFile(file);
  const lock = new OpeningLock(options.path);
  const gate = new DiskGate(options.path, options.noSync !== true);
  return lock.exclusive(() => {
    const root = openFile<V, K>(options);
    const uncount = countOpen(options.path);
    explainFailures(root, () => endProcess(file));
    const tables = openTables(root);
    guardCommits(root, { lock, gate, path: options.path, uncount });
    // LMDB flushes the content of a file but not its folder entry: without that, a power cut loses a new file with all
    // its commits.
    if (isNew && options.noSync !== true)
      for (const folder of [options.path, dirname(options.path)]) syncPathSync(folder);
    return tables;
  });
}

/** What the commits of an LMDB environment in folder `path` pass. */
interface Guards {
  readonly lock: OpeningLock;
  readonly gate: DiskGate;
  /** Counts it as closed (open-envs.ts). */
  readonly uncount: () => void;
  readonly path: string;
}

/**
 * Makes the transactions of an LMDB environment and its `close` take the lock, and `close` wait for the transactions. A
 * transaction that fails because of the disk rejects with its refusal.
 */
function guardCommits<V, K extends Key>(root: RootDatabase<V, K>, { lock, gate, path, uncount }: Guards): void {
  const transaction = root.transaction.bind(root);
  root.transaction = <R>(action: () => R) => {
    const commit = gate.run(() => lock.shared(() => awaken(transaction(action))));
    track(path, commit);
    return commit;
  };
  const transactionSync = root.transactionSync.bind(root);
  root.transactionSync = (action, flags) => gate.runSync(() => lock.sharedSync(() => transactionSync(action, flags)));
  const readerCheck = root.readerCheck.bind(root);
  root.readerCheck = () => readerCheck() + lock.readerCheck();
  const close = root.close.bind(root);
  root.close = async () => {
    // Only the commits of now: another store in this process may continue to commit.
    await Promise.allSettled(pendingCommits.get(path) ?? new Set<Promise<unknown>>());
    await lock.closing(close);
    uncount();
  };
}
