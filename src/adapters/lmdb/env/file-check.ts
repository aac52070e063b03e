import { closeSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { DataError } from '../../../model/errors.ts';

/** What every LMDB file begins with, after the header of its first page. */
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;
const HEAD_BYTES = 64;

/**
 * Looks whether a file is a database at all, before LMDB maps it: one that is not can end the process with a signal, which
 * nobody can catch. A file that is absent or empty passes, as one that is to be made.
 *
 * @throws {DataError} when it is something else
 */
export function checkDatabaseFile(path: string): void {
  const head = firstBytes(path);
  if (head === null || head.length === 0) return;
  const magic = head.length < HEAD_BYTES ? 0 : endianness() === 'LE' ? head.readUInt32LE(MAGIC_AT) : head.readUInt32BE(MAGIC_AT);
  if (magic === MAGIC) return;
  throw new DataError(`${path} is damaged: it does not begin like a database. Stop the server, keep a copy of the folder, and restore a backup (collab restore).`);
}

/** The start of a file; null when there is none. */
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
