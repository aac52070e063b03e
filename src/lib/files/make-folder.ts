import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

// `mkdir` of Node.js with `recursive` reports ENOENT for most errors, such as EDQUOT, EROFS and EIO, and loops without
// end on some.

const MODE = 0o700;
/** How often a folder is tried: others may make it or its parent meanwhile, or remove one of them. */
const ATTEMPTS = 20;

/**
 * Creates a folder (mode 0700) and its missing parents, without flushing their names. No effect if it exists.
 *
 * @returns the first folder that it created; undefined if there was none to create
 * @throws {NodeJS.ErrnoException} with the error of the operating system
 */
export function makeFolder(path: string): Promise<string | undefined> {
  return make(path, ATTEMPTS);
}

async function make(path: string, attempts: number): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: MODE });
    return path;
  } catch (error) {
    if (await isFolder(path)) return undefined;
    if (!mayChange(error, path) || attempts === 1) throw error;
    const first = (await isFolder(dirname(path))) ? undefined : await makeFolder(dirname(path));
    const created = await make(path, attempts - 1);
    return first ?? created;
  }
}

/** As `makeFolder`, synchronously. */
export function makeFolderSync(path: string, attempts = ATTEMPTS): void {
  try {
    mkdirSync(path, { mode: MODE });
  } catch (error) {
    if (isFolderSync(path)) return;
    if (!mayChange(error, path) || attempts === 1) throw error;
    if (!isFolderSync(dirname(path))) makeFolderSync(dirname(path));
    makeFolderSync(path, attempts - 1);
  }
}

/** Whether another attempt can succeed: the parent was missing, or the folder was there and has been removed since. */
function mayChange(error: unknown, path: string): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (code === 'ENOENT' || code === 'EEXIST') && dirname(path) !== path;
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

function isFolderSync(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
