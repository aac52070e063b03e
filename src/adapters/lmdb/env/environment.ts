import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Key, open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { syncPathSync } from '../../../lib/durable-files.ts';
import { endProcess, explainFailures } from './commit-failure.ts';
import { checkDatabaseFile } from './file-check.ts';
import { OpeningLock } from './opening-lock.ts';
import { DATA_FILE } from './store-files.ts';

/**
 * Of every environment. A folder with a dot in its name would be taken for a file. A flush belongs to its commit, inside
 * the writers' lock: overlapping flushes of several processes can finish out of order, and a writer that is killed then
 * takes the store back to the older one. And one group commit is one transaction by itself already.
 */
export const OPTIONS = { noSubdir: false, maxReaders: 1024, overlappingSync: false, eventTurnBatching: false, compression: false } as const;

/** Commits under way in this process, by the folder of their environment. */
const commitsUnderWay = new Map<string, Set<Promise<unknown>>>();

/**
 * Resolves when no commit of this process to the environment in folder `path` is under way. To be awaited right before an
 * environment that this process may have open already is opened once more: the write thread of lmdb-js would wait for the
 * main thread while it holds LMDB's writers' lock, and the opening, in the main thread, for that lock.
 */
export async function ownCommitsDone(path: string): Promise<void> {
  for (let pending = commitsUnderWay.get(path); pending !== undefined; pending = commitsUnderWay.get(path)) await Promise.allSettled(pending);
}

function track(path: string, commit: Promise<unknown>): void {
  const underWay = commitsUnderWay.get(path) ?? new Set();
  commitsUnderWay.set(path, underWay.add(commit));
  const forget = (): void => {
    underWay.delete(commit);
    if (underWay.size === 0) commitsUnderWay.delete(path);
  };
  void commit.then(forget, forget);
}

/**
 * Opens the LMDB environment in folder `options.path`, which other processes may have open, and makes it where there is
 * none. Write to it by `transaction` and `transactionSync` of the environment alone, never by a `put` outside of them: those
 * two keep commits and openings apart (opening-lock.ts). Its `readerCheck` frees the dead readers of that lock too.
 *
 * @param openTables opens the tables in it, which may write
 * @returns what `openTables` returns
 * @throws {DataError} when the file is no database, or another process commits without end
 */
export function openEnvironment<V, K extends Key, T>(options: RootDatabaseOptionsWithPath & { path: string }, openTables: (root: RootDatabase<V, K>) => T): T {
  mkdirSync(options.path, { recursive: true, mode: 0o700 });
  const file = join(options.path, DATA_FILE);
  const isNew = !existsSync(file);
  checkDatabaseFile(file);
  const lock = new OpeningLock(options.path);
  try {
    return lock.alone(() => {
      const root = open<V, K>(options);
      explainFailures(root, () => endProcess(file));
      const tables = openTables(root);
      keepApart(root, lock, options.path);
      // LMDB flushes what it writes, not the name of the file: without it a power cut takes every commit to a new one.
      if (isNew && options.noSync !== true) for (const folder of [options.path, dirname(options.path)]) syncPathSync(folder);
      return tables;
    });
  } catch (error) {
    void lock.close();
    throw error;
  }
}

function keepApart<V, K extends Key>(root: RootDatabase<V, K>, lock: OpeningLock, path: string): void {
  const transaction = root.transaction.bind(root);
  root.transaction = <R>(action: () => R) => {
    const commit = lock.shared(() => transaction(action));
    track(path, commit);
    return commit;
  };
  const transactionSync = root.transactionSync.bind(root);
  root.transactionSync = (action, flags) => lock.sharedSync(() => transactionSync(action, flags));
  const readerCheck = root.readerCheck.bind(root);
  root.readerCheck = () => readerCheck() + lock.readerCheck();
  const close = root.close.bind(root);
  root.close = async () => {
    // Once: another store in this process may go on committing.
    await Promise.allSettled(commitsUnderWay.get(path) ?? new Set<Promise<unknown>>());
    await close();
    await lock.close();
  };
}
