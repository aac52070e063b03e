import type { Stats } from 'node:fs';
import { lstat, opendir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describeUser } from '../../lib/process/user-names.ts';
import { type Check, type CheckedFolder, fail, ok, warn } from './check.ts';
import { shellWord } from '../../lib/shell-word.ts';

const NAME = 'owners';
/** What the owner of a folder or file needs: to list, enter and change it; to read and write it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** What in the data folder its owner cannot use. */
interface Found {
  /** Things of other users: how many, and the first. */
  foreign: number;
  firstForeign: { readonly path: string; readonly uid: number } | null;
  /** Things whose mode denies their owner. */
  closed: number;
  firstClosed: string | null;
}

/**
 * Checks that all files and folders in the data folder belong to its owner, whom the server runs as, and that their
 * modes let that user read and write them. The data folder must exist.
 */
export async function checkOwners({ dir, config: { dataDir } }: CheckedFolder): Promise<Check> {
  const owner = await stat(dataDir);
  const own = `${owner.uid}:${owner.gid}`;
  const found: Found = { foreign: 0, firstForeign: null, closed: 0, firstClosed: null };
  await search(dataDir, owner, found);
  if (found.firstForeign !== null) {
    const { path, uid } = found.firstForeign;
    const finding =
      `${count(found.foreign)} in ${dataDir}, such as ${path}, ${belong(found.foreign)} to ` +
      `${describeUser(uid)} and not to its owner, ${describeUser(owner.uid)}, so the server cannot use ` +
      `${found.foreign === 1 ? 'it' : 'them'}`;
    return fail(NAME, finding, `As root: chown -R ${own} ${shellWord(dataDir)}`);
  }
  if (found.firstClosed !== null) {
    const finding =
      `the modes of ${count(found.closed)} in ${dataDir}, such as ${found.firstClosed}, do not let ` +
      `${describeUser(owner.uid)} read and write`;
    return fail(NAME, finding, `As that user or as root: chmod -R u+rwX ${shellWord(dataDir)}`);
  }
  return (
    (await outerOwner(dir, dataDir, owner)) ??
    ok(NAME, `everything in the data folder belongs to ${describeUser(owner.uid)}`)
  );
}

/** Data of root in a folder of another user is mostly a server that was once started as root. */
async function outerOwner(dir: string, dataDir: string, owner: Stats): Promise<Check | null> {
  const outer = await stat(dir).catch(() => null);
  if (outer === null || owner.uid !== 0 || outer.uid === 0 || dirname(dataDir) !== dir) return null;
  return warn(
    NAME,
    `${dataDir} belongs to root, but ${dir} to ${describeUser(outer.uid)}: a server that runs as that user cannot use it`,
    `Unless the server runs as root: chown -R ${outer.uid}:${outer.gid} ${shellWord(dataDir)}`,
  );
}

async function search(folder: string, owner: Stats, found: Found): Promise<void> {
  // What cannot be listed has been found itself.
  const entries = await opendir(folder).catch(() => null);
  if (entries === null) return;
  for await (const { name } of entries) {
    const path = join(folder, name);
    // A running server removes files meanwhile.
    const entry = await lstat(path).catch(() => null);
    if (entry === null) continue;
    note(path, entry, owner, found);
    if (entry.isDirectory()) await search(path, owner, found);
  }
}

function note(path: string, entry: Stats, owner: Stats, found: Found): void {
  const needed = entry.isDirectory() ? FOLDER_MODE : FILE_MODE;
  if (entry.uid !== owner.uid) {
    found.foreign++;
    found.firstForeign ??= { path, uid: entry.uid };
  } else if (!entry.isSymbolicLink() && (entry.mode & needed) !== needed) {
    found.closed++;
    found.firstClosed ??= path;
  }
}

const count = (n: number): string => (n === 1 ? 'one file or folder' : `${n} files and folders`);

const belong = (n: number): string => (n === 1 ? 'belongs' : 'belong');
