import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants as fileConstants,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { constants, endianness } from 'node:os';
import { join } from 'node:path';
import { nameFile } from '../../../lib/errno.ts';
import { DataError } from '../../../model/errors.ts';
import { DATA_FILE, LOCK_FILE } from './store-files.ts';

const { O_RDWR, O_CREAT, O_DSYNC } = fileConstants;

/** Magic number of an LMDB file, which follows the header of each of its first two pages. */
const MAGIC = 0xbeefc0de;
const MAGIC_OFFSET = 24;
/** Offset of the size of a page, in bytes, in the first one. */
const PAGE_SIZE_OFFSET = 48;
const HEAD_BYTES = 64;
/**
 * Offset of the number of the last page (its lower half), and the bytes up to the end of the record of a page that
 * makes a commit valid.
 */
const LAST_PAGE_OFFSET = 144;
const META_BYTES = 160;
/** More than the two pages of a new database and the two that are written of a new lock file, in bytes. */
const NEW_BYTES = 5 * 4_096;
/** The file that is written to try the disk (as disk-gate.ts): a killed process leaves at most one. */
const PROBE_FILE = 'disk-probe';

/**
 * Makes the calls on the files of an LMDB environment in `folder` with which LMDB opens it, so that their errors can be
 * reported: after an error while it opens, lmdb-js 3.5.6 frees memory twice (`EnvWrap::openEnv`), which ends the
 * process with SIGSEGV. An error that comes once, to LMDB itself, still does that
 * (docs/decisions/0063-disks-that-refuse.md).
 *
 * Call it only while this process does not have the LMDB environment open: closing the lock file gives up all locks of
 * the process on it.
 *
 * @throws {NodeJS.ErrnoException} with `path` when they fail
 */
export function checkAccess(folder: string): void {
  const data = join(folder, DATA_FILE);
  const sizes = [data, join(folder, LOCK_FILE)].map(openableSize);
  // LMDB fills a file that is missing or empty.
  if (sizes.includes(0)) tryNewFile(folder);
  // LMDB reads its first two pages before it maps the file.
  const first = bytesAt(data, 0);
  if (first !== null && hasMagic(first)) bytesAt(data, numberAt(first, PAGE_SIZE_OFFSET));
}

/**
 * Opens a file as LMDB does, and closes it. Returns its size in bytes; 0 if it is missing, as a lock file may be at any
 * moment.
 *
 * @throws {NodeJS.ErrnoException} when it is no file, or cannot be opened
 */
function openableSize(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === false)
    throw Object.assign(new Error(`EACCES: not a file, open '${path}'`), {
      code: 'EACCES',
      errno: -constants.errno.EACCES,
      syscall: 'open',
      path,
    });
  try {
    for (const flags of [O_RDWR, O_RDWR | O_DSYNC]) closeSync(openSync(path, flags));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
  return stats?.size ?? 0;
}

/** Writes and reads a file as LMDB does with a new one, and removes it. */
function tryNewFile(folder: string): void {
  const path = join(folder, PROBE_FILE);
  try {
    const file = openSync(path, O_RDWR | O_CREAT, 0o600);
    try {
      ftruncateSync(file, NEW_BYTES);
      writeSync(file, randomBytes(NEW_BYTES), 0, NEW_BYTES, 0);
      readSync(file, Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    } finally {
      closeSync(file);
      rmSync(path, { force: true });
    }
  } catch (error) {
    throw nameFile(error, path);
  }
}

/**
 * Checks that a file is a database before LMDB maps it: mapping any other file can end the process with a signal that
 * cannot be caught. A file that is missing or empty passes, because LMDB creates the database in it.
 *
 * @throws {DataError} when it is not a database
 */
export function checkDatabaseFile(path: string): void {
  const head = bytesAt(path, 0);
  if (head === null || head.length === 0 || hasMagic(head)) return;
  throw new DataError(
    `${path} is damaged: it is not an LMDB database. Stop the server, keep a copy of the folder, and restore a backup (collab restore).`,
  );
}

/**
 * Whether a database file is shorter than it says, so that a process that reads the missing part is ended by SIGBUS.
 * LMDB may leave its last pages unwritten if they are free again: so this tells only why a process was ended so.
 */
export function isCutOff(path: string): boolean {
  const first = bytesAt(path, 0, META_BYTES);
  if (first === null || !hasMagic(first)) return false;
  const pageBytes = numberAt(first, PAGE_SIZE_OFFSET);
  const second = bytesAt(path, pageBytes, META_BYTES);
  const pages = [first, second].map((page) => (page?.length === META_BYTES ? numberAt(page, LAST_PAGE_OFFSET) + 1 : 0));
  return statSync(path).size < Math.min(...pages) * pageBytes || second?.length !== META_BYTES;
}

/** Whether both pages of a database that has nothing in it are there. A file that is missing or empty is none. */
export function isEmptyDatabase(path: string): boolean {
  const first = bytesAt(path, 0);
  if (first === null || !hasMagic(first)) return false;
  const second = bytesAt(path, numberAt(first, PAGE_SIZE_OFFSET));
  return second !== null && hasMagic(second);
}

function hasMagic(page: Buffer): boolean {
  return page.length >= HEAD_BYTES && numberAt(page, MAGIC_OFFSET) === MAGIC;
}

function numberAt(bytes: Buffer, offset: number): number {
  return endianness() === 'LE' ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
}

/** The first bytes of the page at `offset` of a file, fewer at its end; null if the file is missing. */
function bytesAt(path: string, offset: number, length = HEAD_BYTES): Buffer | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const head = Buffer.alloc(length);
    return head.subarray(0, readSync(file, head, 0, length, offset));
  } catch (error) {
    throw nameFile(error, path);
  } finally {
    closeSync(file);
  }
}
