import { statfsSync } from 'node:fs';
import type { Key, RootDatabase } from 'lmdb';
import { syncPathSync } from '../../../lib/files/durable-files.ts';
import { messageOf } from '../../../lib/thrown.ts';
import { withTimeout } from '../../../lib/concurrency/deadline.ts';
import { systemErrorOf } from '../../../lib/errno.ts';
import { diskFailed, diskFull, diskRefusalOf } from '../../../model/disk-refusal.ts';
import { type CollabError, DataError } from '../../../model/errors.ts';

/** How long to wait for the cause of a failed commit; it normally follows in the same event loop iteration. */
const CAUSE_MS = 1_000;
/** With less free space than this, in bytes, an I/O error is treated as a full disk. */
const FULL_DISK_BYTES = 32 * 1024 * 1024;

/**
 * Makes transactions of an LMDB environment reject with the cause of their failure, such as a full disk. lmdb-js
 * rejects with an uninformative error that has a promise of the cause, `commitError`; if that promise is not handled,
 * it ends the process.
 *
 * After an error while LMDB wrote the page that makes a commit valid, this process can neither read nor write the LMDB
 * environment any more (MDB_PANIC). Then `onLost` is called, once.
 */
export function explainFailures<V, K extends Key>(root: RootDatabase<V, K>, onLost: () => void): void {
  let lost = false;
  const check = (): void => {
    if (lost || !isLost(root)) return;
    lost = true;
    onLost();
  };
  const transaction = root.transaction.bind(root);
  root.transaction = async <T>(action: () => T): Promise<T> => {
    try {
      return await transaction(action);
    } catch (error) {
      const cause = await causeOf(error);
      check();
      throw cause;
    }
  };
  const transactionSync = root.transactionSync.bind(root);
  root.transactionSync = (action, flags) => {
    try {
      return transactionSync(action, flags);
    } catch (error) {
      check();
      throw error;
    }
  };
}

/**
 * Flushes the file at `path`, and ends this process with an uncaught error, which a worker logs before it exits, so
 * that the primary replaces it. LMDB keeps one state per file and process, so reopening does not recover.
 */
export function endProcess(path: string): void {
  try {
    // LMDB has taken the failed page back without flushing that. Before others reuse the pages that it refers to.
    syncPathSync(path);
  } catch {
    // The disk fails that, too.
  }
  const error = new DataError(
    `This process cannot use ${path} any more: an I/O error hit the page that makes a commit valid ` +
      '(MDB_PANIC). The process ends, so that ' +
      'another one can open the file. Look for disk errors in the kernel log (dmesg).',
    'Run the command again. The store is as before it, or has its change.',
  );
  setImmediate(() => {
    throw error;
  });
}

/**
 * Converts an error of LMDB, or of a call on its files, to the refusal that the caller gets (`storage_full`,
 * `storage_failed`) if the disk is its cause; returns any other error as it is. LMDB also reports an I/O error when
 * only some of its pages fitted on the disk; the free space of the folder `path` tells the two cases apart. The refusal
 * has the file or folder in question as `path`.
 */
export function storeErrorOf(error: unknown, path: string): unknown {
  const refusal = refusalOf(error, path);
  return refusal === null ? error : Object.assign(refusal, { path: (error as { path?: string }).path ?? path });
}

function refusalOf(error: unknown, path: string): CollabError | null {
  const message = messageOf(error);
  if (message.startsWith('MDB_MAP_FULL')) return diskFull(error);
  // The transactions after one that could not write the page that makes it valid; and one whose cause is not known.
  if (message.startsWith('MDB_PANIC') || hasCommitError(error)) return diskFailed(error);
  if (systemErrorOf(error)?.name === 'EIO' && freeBytes(path) < FULL_DISK_BYTES) return diskFull(error);
  return diskRefusalOf(error);
}

/** Infinite if a disk that has failed does not tell. */
function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return Infinity;
  }
}

function isLost<V, K extends Key>(root: RootDatabase<V, K>): boolean {
  try {
    root.resetReadTxn();
    // A read begins a snapshot, which fails then. Any key will do.
    root.doesExist(1 as K);
    return false;
  } catch (error) {
    return /MDB_PANIC/.test(messageOf(error));
  }
}

function hasCommitError(error: unknown): error is Error & { commitError: Promise<unknown> } {
  return error instanceof Error && 'commitError' in error && error.commitError instanceof Promise;
}

async function causeOf(error: unknown): Promise<unknown> {
  if (!hasCommitError(error)) return error;
  const cause = error.commitError.then(
    () => error,
    (reason: unknown) => reason,
  );
  return withTimeout(CAUSE_MS, cause, () => error);
}
