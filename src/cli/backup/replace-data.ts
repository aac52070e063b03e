import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../../cluster/data-folder-lock.ts';
import { ensureFolder, syncPath, syncTree } from '../../lib/durable-files.ts';
import { Failure } from '../failure.ts';
import { note } from '../terminal/output.ts';

/** What a restore replaces in a data folder, in the order in which it is moved: where the store is, the folder counts as whole. */
const CONTENT = ['files', 'store'];
/** Begins the name of a folder in which a restore copies and checks; one that is cut off there has changed nothing. */
const DRAFT = '.restore-';
/** Begins the name of a folder with all that is to be moved into place; such a restore is finished by the next command. */
const READY = 'restoring-';
/** Begins the name of a folder with the data that a restore has replaced. */
const ASIDE = 'before-restore-';

/** Makes an empty folder to restore into, and removes those that interrupted restores have left. The caller holds the lock of the data folder. */
export async function makeDraft(dataDir: string): Promise<string> {
  for (const name of namesIn(dataDir, DRAFT)) await rm(join(dataDir, name), { recursive: true, force: true });
  const draft = join(dataDir, `${DRAFT}${process.pid}`);
  await mkdir(draft, { mode: 0o700 });
  return draft;
}

/**
 * Replaces the store and the files of a data folder by those in `draft`. From its first rename on the restore is decided:
 * when it is cut off after that, `finishRestore` does the rest. The caller holds the lock of the data folder.
 *
 * @returns the folder with the old data; null when there was none
 */
export async function putInPlace(dataDir: string, draft: string): Promise<string | null> {
  for (const name of CONTENT) await ensureFolder(join(draft, name));
  await syncTree(draft);
  const time = new Date().toISOString().replaceAll(':', '-');
  await rename(draft, join(dataDir, `${READY}${time}`));
  await syncPath(dataDir);
  return moveIn(dataDir, time);
}

/** Whether a restore of a data folder was cut off after it was decided, or is at it right now. */
export function isRestoring(dataDir: string): boolean {
  return namesIn(dataDir, READY).length > 0;
}

/** What restores that were cut off before that have left. */
export function restoreLeftovers(dataDir: string): string[] {
  return namesIn(dataDir, DRAFT).map((name) => join(dataDir, name));
}

/**
 * Finishes a restore that was cut off.
 *
 * @throws {Failure} when it is not cut off but still at it
 */
export async function finishRestore(dataDir: string): Promise<void> {
  if (!isRestoring(dataDir)) return;
  const lock = await lockOf(dataDir);
  try {
    for (const name of namesIn(dataDir, READY)) {
      const aside = await moveIn(dataDir, name.slice(READY.length));
      note(`Finished a restore that was interrupted.${aside === null ? '' : ` The old data is in ${aside} now.`}`);
    }
  } finally {
    lock.release();
  }
}

/**
 * Refuses to make a store where a restore has taken the old one away and not put another in its place.
 *
 * @throws {Failure} saying where the old data is
 */
export function refuseLostStore(dataDir: string): void {
  if (isRestoring(dataDir)) throw underWay(dataDir);
  const aside = namesIn(dataDir, ASIDE).at(-1);
  if (aside === undefined) return;
  throw new Failure(`${dataDir} holds no store, but the data that a restore has moved aside: nothing was made.`, [
    'Restore the backup again: collab restore <backup>',
    `Or go back to the old data: move what is in ${join(dataDir, aside)} to ${dataDir}.`,
    'Or, to begin with an empty store, move that folder elsewhere.',
  ]);
}

/** Moves what is not in its place yet, however far an earlier call came. Returns as `putInPlace`. */
async function moveIn(dataDir: string, time: string): Promise<string | null> {
  const ready = join(dataDir, `${READY}${time}`);
  const aside = join(dataDir, `${ASIDE}${time}`);
  for (const name of CONTENT) {
    const [from, to] = [join(ready, name), join(dataDir, name)];
    if (!existsSync(from)) continue;
    if (existsSync(to)) {
      await ensureFolder(aside);
      await rename(to, join(aside, name));
      await syncPath(aside);
    }
    await rename(from, to);
    await syncPath(dataDir);
  }
  await rm(ready, { recursive: true });
  await syncPath(dataDir);
  return existsSync(aside) ? aside : null;
}

async function lockOf(dataDir: string): Promise<DataLock> {
  try {
    return await lockDataFolder(dataDir);
  } catch (error) {
    throw error instanceof StartError ? underWay(dataDir) : error;
  }
}

function underWay(dataDir: string): Failure {
  return new Failure(`A restore of ${dataDir} is under way: nothing was changed.`, ['Call the command again when it has ended.']);
}

/** The entries of a data folder that begin so, in order; none where it can't be read. */
function namesIn(dataDir: string, start: string): string[] {
  try {
    return readdirSync(dataDir).filter((name) => name.startsWith(start)).sort();
  } catch {
    return [];
  }
}
