import { closeSync, fsyncSync, openSync, statSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nameFile, naming } from '../errno.ts';

// A power cut loses what was not flushed. An fsync of a file flushes its contents; an fsync of its folder flushes its
// name. Windows flushes only files that are open for writing, and no folders: NTFS has their names in its journal.

const isWindows = process.platform === 'win32';
const flag = isWindows ? 'r+' : 'r';

/** Flushes the contents of a file, or the names in a folder. On Windows, a folder is left alone. */
export async function syncPath(path: string): Promise<void> {
  if (isWindows && (await isFolder(path))) return;
  const handle = await open(path, flag);
  try {
    await naming(path, handle.sync());
  } finally {
    await handle.close();
  }
}

/** As `syncPath`, synchronously. */
export function syncPathSync(path: string): void {
  if (isWindows && statSync(path).isDirectory()) return;
  const file = openSync(path, flag);
  try {
    fsyncSync(file);
  } catch (error) {
    throw nameFile(error, path);
  } finally {
    closeSync(file);
  }
}

/**
 * The lock file of LMDB. Its content is not needed after a crash, and closing it gives up all locks of the process on
 * it, also those of its open LMDB environment.
 */
const LOCK_FILE = 'lock.mdb';

/**
 * Flushes a folder and all files and folders below it, but for lock files of LMDB. Nothing below it may be removed
 * meanwhile.
 */
export async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    else if (entry.isFile() && entry.name !== LOCK_FILE) await syncPath(path);
  }
  await syncPath(folder);
}

/**
 * Creates a folder (mode 0700) and its missing parents, and flushes the names of those it creates.
 *
 * @returns the folders that it created, each after its parent
 * @throws {NodeJS.ErrnoException} if it cannot be created. Does not use `mkdir` with `recursive`, which loops forever
 *   where the system refuses a folder with ENOENT, as in /proc.
 */
export async function ensureFolder(path: string): Promise<string[]> {
  try {
    return await makeFolder(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const parent = dirname(path);
  // Another call may have created the parent since.
  const parents = (await isFolder(parent)) ? [] : await ensureFolder(parent);
  return [...parents, ...(await makeFolder(path))];
}

/** As `ensureFolder`, for a folder whose parent exists. */
async function makeFolder(path: string): Promise<string[]> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (await isFolder(path)) return [];
    throw error;
  }
  await syncPath(dirname(path));
  return [path];
}

/** Removes folders, the last one first, as far as they are empty. */
export async function removeEmptyFolders(paths: readonly string[]): Promise<void> {
  for (const path of paths.toReversed()) await rmdir(path).catch(() => undefined);
}

/**
 * Writes a file (mode 0600) and flushes contents and name. After a crash or power cut the file is complete or absent.
 * Replaces an existing file of that name.
 */
export async function writeDurably(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}`;
  try {
    const handle = await open(draft, 'w', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw nameFile(error, path);
  }
  await syncPath(dirname(path));
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}
