import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { glibcVersion } from '../../../lib/process/glibc-version.ts';
import type { LockHolder } from '../../../ports/store-operations.ts';
import { LOCK_FILE } from './store-files.ts';

/**
 * `MDB_MAGIC`, with which a lock file begins. `mti_format` follows, which tells how large a mutex is on this machine.
 */
const MAGIC = 0xbeefc0de;
/**
 * `MDB_LOCK_VERSION_BITS`, and the bits above them that have the type of the locks, in units of 270 (`MDB_lock_desc`).
 */
const VERSION_BITS = 12;
const TYPE_MASK = 0x7fff;
const TYPE_UNIT = 270;
/**
 * The type of POSIX mutexes (`MDB_LOCK_TYPE`): this, their alignment (0 to 4), and five times their size in words of 4
 * bytes.
 */
const MUTEX_TYPE = 10;
/** `MDB_txbody` has 24 bytes before its own mutex; the writers' mutex begins at the next cache line. */
const BODY_BYTES = 24;
const CACHE_LINE = 64;
/** The bits of a futex word that are not flags (`FUTEX_TID_MASK` of linux/futex.h). */
const THREAD_MASK = 0x3fff_ffff;
/** Folders between that of a data folder and its lock files: `store/log/opening`. */
const MAX_DEPTH = 3;

/**
 * Where a mutex has the id of the thread that holds it, since it is a robust futex (`man 2 get_robust_list`); found at
 * the first use.
 */
let owner: number | undefined;
/** Whether unknown locks have been reported. */
let warned = false;

/**
 * Lists the processes that hold a writers' lock of an LMDB environment in a folder or its subfolders, as its lock file
 * says. Opens no environment. A result is a guess: the id may be one of another container, or of a process that has
 * ended. None on systems without /proc.
 *
 * Call it only while this process has none of them in use: closing a lock file gives up all locks of the process on it.
 */
export function findLockHolders(folder: string): LockHolder[] {
  return lockFilesIn(folder, MAX_DEPTH).flatMap((file) => {
    const pid = processOf(readHolder(file));
    return pid === null ? [] : [{ pid, file }];
  });
}

function lockFilesIn(folder: string, depth: number): string[] {
  const own = join(folder, LOCK_FILE);
  return [
    ...(existsSync(own) ? [own] : []),
    ...(depth === 0 ? [] : foldersIn(folder).flatMap((name) => lockFilesIn(join(folder, name), depth - 1))),
  ];
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    // It was removed meanwhile.
    return [];
  }
}

/** The id of the thread that holds the writers' mutex; 0 if none does, or the file was removed meanwhile. */
function readHolder(file: string): number {
  const word = Buffer.alloc(8);
  try {
    const fd = openSync(file, 'r');
    try {
      if (readSync(fd, word, 0, 8, 0) < 8 || word.readUInt32LE() !== MAGIC) return 0;
      const mutex = writersMutexOffset(word.readUInt32LE(4));
      if (mutex === null) return (warnOnce(), 0);
      // glibc has the lock first, musl the type.
      owner ??= glibcVersion() === null ? 4 : 0;
      return readSync(fd, word, 0, 4, mutex + owner) === 4 ? word.readUInt32LE() & THREAD_MASK : 0;
    } finally {
      closeSync(fd);
    }
  } catch {
    return 0;
  }
}

/**
 * Offset of the writers' mutex (`mti_wmutex` of `MDB_txninfo`) in a lock file with this `mti_format`: 64 with mutexes
 * of 40 bytes, as glibc and musl have on x64, and 128 with those of 48 bytes that glibc has on arm64
 * (`__SIZEOF_PTHREAD_MUTEX_T`). Null for another kind of lock.
 */
export function writersMutexOffset(format: number): number | null {
  const type = Math.floor(((format >>> VERSION_BITS) & TYPE_MASK) / TYPE_UNIT);
  const mutexBytes = 4 * Math.floor((type - MUTEX_TYPE) / 5);
  return mutexBytes >= 24 ? Math.ceil((BODY_BYTES + mutexBytes) / CACHE_LINE) * CACHE_LINE : null;
}

function warnOnce(): void {
  if (!warned)
    process.emitWarning(
      'LMDB locks its files in an unknown way here: processes that keep a lock of the store cannot be named or ended',
    );
  warned = true;
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
