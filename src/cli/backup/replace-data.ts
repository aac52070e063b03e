import { readdirSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from '../../lib/files/exists.ts';
import { StartError } from '../../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../../cluster/data-folder-lock.ts';
import { ensureFolder, syncPath, syncTree } from '../../lib/files/durable-files.ts';
import { Failure } from '../failure.ts';
import { printNote } from '../terminal/output.ts';

/**
 * The entries of a data folder that a restore replaces, in the order of the moves. The store is last: if it exists, the
 * folder counts as complete.
 */
const CONTENT = ['files', 'store'];
/**
 * Prefix of the folder in which a restore copies and checks. A restore that is interrupted at that stage has changed
 * nothing.
 */
const STAGING = '.restore-';
/** Prefix of the folder whose contents are to be moved into place. The next command completes such a restore. */
const READY = 'restoring-';
/** Prefix of the folder with the data that a restore has replaced. */
const ASIDE = 'before-restore-';

/**
 * Creates an empty staging folder, and removes those of interrupted restores. The caller has locked the data folder.
 */
export async function createStagingFolder(dataDir: string): Promise<string> {
  for (const name of namesIn(dataDir, STAGING)) await rm(join(dataDir, name), { recursive: true, force: true });
  const staging = join(dataDir, `${STAGING}${process.pid}`);
  await mkdir(staging, { mode: 0o700 });
  return staging;
}

/**
 * Replaces the store and the files of a data folder with those in `staging`. Once its first rename is done, the restore
 * is committed: if it is interrupted after that, `finishRestore` completes it. The caller has locked the data folder.
 *
 * @returns the folder with the old data; null if there was none
 */
export async function replaceData(dataDir: string, staging: string): Promise<string | null> {
  for (const name of CONTENT) await ensureFolder(join(staging, name));
  await syncTree(staging);
  const time = new Date().toISOString().replaceAll(':', '-');
  await rename(staging, join(dataDir, `${READY}${time}`));
  await syncPath(dataDir);
  return moveIntoPlace(dataDir, time);
}

/** Whether a committed restore of a data folder was interrupted or is still running. */
export function isRestoring(dataDir: string): boolean {
  return namesIn(dataDir, READY).length > 0;
}

/** The staging folders of restores that were interrupted before they were committed, or are still running. */
export function abandonedRestores(dataDir: string): string[] {
  return namesIn(dataDir, STAGING).map((name) => join(dataDir, name));
}

/**
 * Completes an interrupted restore.
 *
 * @throws {Failure} if the restore is still running
 */
export async function finishRestore(dataDir: string): Promise<void> {
  if (!isRestoring(dataDir)) return;
  const lock = await lockForRestore(dataDir);
  try {
    for (const name of namesIn(dataDir, READY)) {
      const aside = await moveIntoPlace(dataDir, name.slice(READY.length));
      printNote(
        `Completed a restore that was interrupted.${aside === null ? '' : ` The old data is now in ${aside}.`}`,
      );
    }
  } finally {
    lock.release();
  }
}

/**
 * Refuses to create a store where a restore has moved the old one aside without putting another one in its place.
 *
 * @throws {Failure} naming the folder with the old data
 */
export function refuseMissingStore(dataDir: string): void {
  if (isRestoring(dataDir)) throw restoreInProgress(dataDir);
  const aside = namesIn(dataDir, ASIDE).at(-1);
  if (aside === undefined) return;
  throw new Failure(
    `${dataDir} contains no store, only the data that a restore has moved aside. No new store was created.`,
    [
      'Restore the backup again: `collab restore <backup>`',
      `Or go back to the old data: move the contents of ${join(dataDir, aside)} to ${dataDir}.`,
      'Or, to start with an empty store, move that folder elsewhere.',
    ],
  );
}

/**
 * Moves everything that is not in its place yet; an earlier call may have done part of it. Returns as `replaceData`.
 */
async function moveIntoPlace(dataDir: string, time: string): Promise<string | null> {
  const ready = join(dataDir, `${READY}${time}`);
  const aside = join(dataDir, `${ASIDE}${time}`);
  for (const name of CONTENT) {
    const [from, to] = [join(ready, name), join(dataDir, name)];
    if (!exists(from)) continue;
    if (exists(to)) {
      await ensureFolder(aside);
      await rename(to, join(aside, name));
      await syncPath(aside);
    }
    await rename(from, to);
    await syncPath(dataDir);
  }
  await rm(ready, { recursive: true });
  await syncPath(dataDir);
  return exists(aside) ? aside : null;
}

async function lockForRestore(dataDir: string): Promise<DataLock> {
  try {
    return await lockDataFolder(dataDir);
  } catch (error) {
    throw error instanceof StartError ? restoreInProgress(dataDir) : error;
  }
}

function restoreInProgress(dataDir: string): Failure {
  return new Failure(`A restore of ${dataDir} is in progress, so nothing was changed.`, [
    'Run the command again when it has finished.',
  ]);
}

/** The sorted entries of a data folder with this prefix; none if it cannot be read. */
function namesIn(dataDir: string, prefix: string): string[] {
  try {
    return readdirSync(dataDir)
      .filter((name) => name.startsWith(prefix))
      .sort();
  } catch {
    return [];
  }
}
