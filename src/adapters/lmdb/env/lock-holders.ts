import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { LockHolder } from '../../../ports/lock-holders.ts';
import { LOCK_FILE } from './store-files.ts';

/**
 * Offset of the writers' mutex in the lock file of LMDB (`mti_wmutex` of `MDB_txninfo`, after one cache line), whose first word
 * is the id of the thread that holds it, in glibc and musl, since it is a robust futex (`man 2 get_robust_list`).
 */
const WRITERS_MUTEX = 64;
/** The bits of a futex word that are not flags (`FUTEX_TID_MASK` of linux/futex.h). */
const THREAD_MASK = 0x3fff_ffff;
/** Folders between that of a data folder and its lock files: `store/log/opening`. */
const MAX_DEPTH = 3;

/**
 * Lists the processes that hold a writers' lock of an LMDB environment in a folder or its subfolders, as its lock file says. Opens
 * no environment. A result is a guess: the id may be one of another container, or of a process that has ended.
 * None on systems without /proc.
 */
export function findLockHolders(folder: string): LockHolder[] {
  return lockFilesIn(folder, MAX_DEPTH).flatMap((file) => {
    const pid = processOf(readHolder(file));
    return pid === null ? [] : [{ pid, file }];
  });
}

function lockFilesIn(folder: string, depth: number): string[] {
  const own = join(folder, LOCK_FILE);
  return [...(existsSync(own) ? [own] : []), ...(depth === 0 ? [] : foldersIn(folder).flatMap((name) => lockFilesIn(join(folder, name), depth - 1)))];
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    // It was removed meanwhile.
    return [];
  }
}

/** The id of the thread that holds the writers' mutex; 0 if none does, or the file was removed meanwhile. */
function readHolder(file: string): number {
  const word = Buffer.alloc(4);
  try {
    const fd = openSync(file, 'r');
    try {
      return readSync(fd, word, 0, 4, WRITERS_MUTEX) === 4 ? word.readUInt32LE() & THREAD_MASK : 0;
    } finally {
      closeSync(fd);
    }
  } catch {
    return 0;
  }
}

/** The process of a thread; null if there is none with this id. */
function processOf(thread: number): number | null {
  if (thread === 0) return null;
  try {
    const [, group] = /^Tgid:\s*(\d+)$/m.exec(readFileSync(`/proc/${thread}/status`, 'utf8')) ?? [];
    return group === undefined ? null : Number(group);
  } catch {
    return null;
  }
}
