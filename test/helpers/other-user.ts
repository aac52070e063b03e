import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, lstatSync, mkdtempSync, readdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Test } from 'tap';
import { tempFolder } from './temp-folder.ts';

/** A user whom no system names. */
export const OTHER_UID = 64_321;

/** A folder of another user, below which that user may do everything. */
export interface OthersFolder {
  readonly path: string;
  /** The file of the program, which that user can read. */
  readonly program: string;
  /** All files and folders below it that do not belong to that user. */
  foreign(): string[];
}

const direct = resolve('dist/bin/collab.js');

/** Whether that user can run the program from its own folder. */
const runsDirect = process.platform === 'linux' && process.getuid?.() === 0 && runs(direct);

/** Why nothing can be done as another user here; false when it can. */
export const noOtherUser: string | false = (() => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can act for another user';
  if (runsDirect) return false;
  const place = mounted();
  if (place === null) return 'the built program cannot be read by another user here';
  const readable = runs(join(place, 'dist/bin/collab.js'));
  unmount(place);
  return readable ? false : 'the built program cannot be read by another user here';
})();

/**
 * Makes such a folder, removed after the test. If other users may not enter the folder of the program, they get it by a
 * mount elsewhere.
 */
export function othersFolder(t: Test): OthersFolder {
  const path = tempFolder(t);
  chownSync(path, OTHER_UID, OTHER_UID);
  const place = runsDirect ? null : mounted();
  if (place !== null) t.teardown(() => unmount(place));
  return { path, program: place === null ? direct : join(place, 'dist/bin/collab.js'), foreign: () => foreignIn(path) };
}

/** Mounts this folder where all users can enter it; null if the system does not allow that. */
function mounted(): string | null {
  const place = mkdtempSync(join(tmpdir(), 'collab-program-'));
  try {
    chmodSync(place, 0o755);
    execFileSync('mount', ['-o', 'bind,ro', resolve('.'), place], { stdio: 'ignore' });
    return place;
  } catch {
    rmdirSync(place);
    return null;
  }
}

function unmount(place: string): void {
  execFileSync('umount', ['--lazy', place]);
  // Never recursively: below it was the folder of the sources.
  rmdirSync(place);
}

function runs(program: string): boolean {
  try {
    execFileSync(process.execPath, [program, 'version'], { uid: OTHER_UID, gid: OTHER_UID, cwd: '/', stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function foreignIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return [...(lstatSync(path).uid === OTHER_UID ? [] : [path]), ...(entry.isDirectory() ? foreignIn(path) : [])];
  });
}
