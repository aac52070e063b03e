import { closeSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { DataError } from '../../../model/errors.ts';

/** Magic number of an LMDB file, which follows the header of its first page. */
const MAGIC = 0xbeefc0de;
const MAGIC_OFFSET = 24;
const HEAD_BYTES = 64;

/**
 * Checks that a file is a database before LMDB maps it: mapping any other file can end the process with a signal that cannot
 * be caught. A file that is missing or empty passes, because LMDB creates the database in it.
 *
 * @throws {DataError} when it is not a database
 */
export function checkDatabaseFile(path: string): void {
  const head = firstBytes(path);
  if (head === null || head.length === 0) return;
  const magic = head.length < HEAD_BYTES ? 0 : endianness() === 'LE' ? head.readUInt32LE(MAGIC_OFFSET) : head.readUInt32BE(MAGIC_OFFSET);
  if (magic === MAGIC) return;
  throw new DataError(`${path} is damaged: it is not an LMDB database. Stop the server, keep a copy of the folder, and restore a backup (collab restore).`);
}

/** The first bytes of a file; null if it is missing. */
function firstBytes(path: string): Buffer | null {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(file);
  }
}
