import type { Dirent } from 'node:fs';
import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { CollabError } from '../../model/errors.ts';
import { isMissing } from './local-staged-blob.ts';

/**
 * Removes the files of a folder to which nothing has been written for `ageMs`. With `dryRun` it only counts them.
 * Returns their number; none if the folder is missing.
 */
export async function sweepFolder(folder: string, ageMs: number, dryRun: boolean): Promise<number> {
  let swept = 0;
  for (const { name } of await entries(folder)) {
    const path = join(folder, name);
    const changed = await stat(path).catch(() => null);
    // The time of a file has fractions of a millisecond, and `Date.now` none.
    if (changed === null || Date.now() - Math.floor(changed.mtimeMs) < ageMs) continue;
    if (!dryRun) await rm(path, { force: true });
    swept++;
  }
  return swept;
}

/** Rejects with `storage_full` if the disk of a folder has less free space than `minFreeBytes`. */
export async function requireFreeSpace(folder: string, minFreeBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < minFreeBytes)
    throw new CollabError('storage_full', 'The disk has too little free space: uploads are refused');
}

/** The entries of a folder; none if it is missing. */
export async function entries(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
