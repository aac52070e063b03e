import { statfsSync } from 'node:fs';
import type { Key, RootDatabase } from 'lmdb';
import { CollabError, DataError } from '../../../model/errors.ts';

/** How long the cause of a failed commit may take to come after it; it comes in the same turn. */
const CAUSE_MS = 1_000;
/** With less free space than this, in bytes, an input/output error is taken for a full disk. */
const FULL_BYTES = 32 * 1024 * 1024;

/**
 * Makes transactions of an environment reject with what went wrong, such as a full disk. By itself lmdb rejects with an error
 * that says nothing and has a promise of the cause, `commitError`; where nobody waits for that one, it ends the process.
 *
 * After an error while LMDB wrote the page that makes a commit valid, this process can neither read nor write the environment
 * any more (MDB_PANIC). Then `onLost` is called, once.
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
 * Ends this process as one that has failed: its error is caught by nobody, which a worker logs before it ends, and the
 * primary replaces it. Nothing less helps, for LMDB keeps one state of a file per process.
 */
export function endProcess(path: string): void {
  const error = new DataError(
    `This process cannot use ${path} any more: an I/O error hit the page that makes a commit valid (MDB_PANIC). It ends, so that ` +
      'another one opens the file anew. Look for errors of the disk in the log of the kernel (dmesg).',
  );
  setImmediate(() => {
    throw error;
  });
}

/** Whether an error of LMDB says that the disk is full, or has failed. */
export function isDiskFailure(error: unknown): boolean {
  return isFullDisk(error) || isIoError(error);
}

/**
 * What a caller is told of a commit that failed. LMDB calls it an input/output error too when only some of its pages still
 * fitted on the disk, so the free space of the folder `path` tells the two apart.
 */
export function refusalOf(error: unknown, path: string): unknown {
  if (isFullDisk(error) || (isIoError(error) && freeBytes(path) < FULL_BYTES)) return new CollabError('storage_full', 'The server’s disk is full: nothing was written');
  if (isIoError(error)) return new CollabError('storage_failed', 'The server’s disk reports an I/O error (EIO): the change was not confirmed');
  return error;
}

function isFullDisk(error: unknown): boolean {
  return /ENOSPC|No space left|MDB_MAP_FULL/i.test(messageOf(error));
}

function isIoError(error: unknown): boolean {
  return /\bEIO\b|Input\/output error/i.test(messageOf(error));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

function isLost<V, K extends Key>(root: RootDatabase<V, K>): boolean {
  try {
    root.resetReadTxn();
    root.useReadTransaction().done();
    return false;
  } catch (error) {
    return /MDB_PANIC/.test(messageOf(error));
  }
}

async function causeOf(error: unknown): Promise<unknown> {
  if (!(error instanceof Error) || !('commitError' in error) || !(error.commitError instanceof Promise)) return error;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<unknown>((resolve) => (timer = setTimeout(resolve, CAUSE_MS, error)));
  const cause = error.commitError.then(() => error, (reason: unknown) => reason);
  return Promise.race([cause, late]).finally(() => clearTimeout(timer));
}
