import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { RootDatabaseOptions } from 'lmdb';
import { isEmptyDatabase } from './file-check.ts';
import { openFile } from './open-file.ts';
import { DATA_FILE } from './store-files.ts';

/**
 * Repairs the file of an LMDB environment in `folder` to which nothing is ever written, if it is not whole: it is never
 * flushed, so a power cut can leave a part of it, or zeros, and LMDB ends a process that opens such a file with
 * SIGSEGV. No effect if the file is missing or empty: LMDB then creates the database in it.
 *
 * Any number of processes may do this at once, also when others have it open after a repair: each writes the same bytes
 * in place.
 *
 * @param options with which it is opened
 */
export function repairEmptyEnv(folder: string, options: RootDatabaseOptions): void {
  const path = join(folder, DATA_FILE);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 || isEmptyDatabase(path)) return;
  const whole = newDatabase(folder, options);
  const file = openSync(path, 'r+');
  try {
    writeSync(file, whole, 0, whole.byteLength, 0);
    ftruncateSync(file, whole.byteLength);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** The content of the file of a new LMDB environment. */
function newDatabase(folder: string, options: RootDatabaseOptions): Buffer {
  const path = mkdtempSync(join(folder, 'new-'));
  try {
    // Nothing is committed, so closing it need not be awaited.
    void openFile({ ...options, path }).close();
    return readFileSync(join(path, DATA_FILE));
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}
