import { statSync } from 'node:fs';
import { join } from 'node:path';
import { LOCK_FILE } from './store-files.ts';

/** How often this process has opened each LMDB environment without closing it, by `lockFileId`. */
const counts = new Map<string, number>();

/**
 * Device and inode of the lock file in the folder of an LMDB environment, which are not used again while it is open;
 * empty if there is none.
 */
export function lockFileId(folder: string): string {
  const stats = statSync(join(folder, LOCK_FILE), { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? '' : `${stats.dev} ${stats.ino}`;
}

/** Whether this process has the LMDB environment in a folder open, by the calls of `countOpen`. */
export function isOpenHere(folder: string): boolean {
  return counts.has(lockFileId(folder));
}

/** Counts the LMDB environment in a folder as open in this process, until the returned function is called. */
export function countOpen(folder: string): () => void {
  const id = lockFileId(folder);
  counts.set(id, (counts.get(id) ?? 0) + 1);
  return () => {
    const left = (counts.get(id) ?? 0) - 1;
    if (left > 0) counts.set(id, left);
    else counts.delete(id);
  };
}
