import { accessSync, closeSync, constants as fileConstants, openSync, readSync, statSync } from 'node:fs';
import { constants, endianness } from 'node:os';
import { join } from 'node:path';
import { nameFile } from '../../../lib/errno.ts';
import { DataError } from '../../../model/errors.ts';
import { DATA_FILE, LOCK_FILE } from './store-files.ts';

const { R_OK, W_OK } = fileConstants;

/** Magic number of an LMDB file, which follows the header of each of its first two pages. */
const MAGIC = 0xbeefc0de;
const MAGIC_OFFSET = 24;
/** Offset of the size of a page, in bytes, in the first one. */
const PAGE_SIZE_OFFSET = 48;
const HEAD_BYTES = 64;

/**
 * Checks that the files of an LMDB environment in `folder` can be opened and read, as far as they exist: otherwise LMDB may end
 * the process with a signal. The lock file is not opened for that, because closing it would give up the locks of this process on it.
 *
 * @throws {NodeJS.ErrnoException} with `path` when they cannot
 */
export function checkAccess(folder: string): void {
  for (const name of [DATA_FILE, LOCK_FILE]) {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (!stats.isFile()) throw Object.assign(new Error(`EACCES: not a file, open '${path}'`), { code: 'EACCES', errno: -constants.errno.EACCES, syscall: 'open', path });
    accessSync(path, R_OK | W_OK);
  }
  // LMDB reads its first two pages before it maps the file.
  const path = join(folder, DATA_FILE);
  const first = bytesAt(path, 0);
  if (first !== null && hasMagic(first)) bytesAt(path, numberAt(first, PAGE_SIZE_OFFSET));
}

/**
 * Checks that a file is a database before LMDB maps it: mapping any other file can end the process with a signal that cannot
 * be caught. A file that is missing or empty passes, because LMDB creates the database in it.
 *
 * @throws {DataError} when it is not a database
 */
export function checkDatabaseFile(path: string): void {
  const head = bytesAt(path, 0);
  if (head === null || head.length === 0 || hasMagic(head)) return;
  throw new DataError(`${path} is damaged: it is not an LMDB database. Stop the server, keep a copy of the folder, and restore a backup (collab restore).`);
}

/** Whether both pages of a database that has nothing in it are there. A file that is missing or empty is none. */
export function isEmptyDatabase(path: string): boolean {
  const first = bytesAt(path, 0);
  if (first === null || !hasMagic(first)) return false;
  const second = bytesAt(path, numberAt(first, PAGE_SIZE_OFFSET));
  return second !== null && hasMagic(second);
}

function hasMagic(page: Buffer): boolean {
  return page.length === HEAD_BYTES && numberAt(page, MAGIC_OFFSET) === MAGIC;
}

function numberAt(bytes: Buffer, offset: number): number {
  return endianness() === 'LE' ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
}

/** The first bytes of the page at `offset` of a file, fewer at its end; null if the file is missing. */
function bytesAt(path: string, offset: number): Buffer | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, offset));
  } catch (error) {
    throw nameFile(error, path);
  } finally {
    closeSync(file);
  }
}
