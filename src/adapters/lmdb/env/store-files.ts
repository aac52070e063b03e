import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The data file of an LMDB environment in its folder. */
export const DATA_FILE = 'data.mdb';
/** Its lock file, which LMDB creates whenever it is missing. */
export const LOCK_FILE = 'lock.mdb';

/** The folder of the opening lock (opening-lock.ts) inside that of its LMDB environment; nothing is stored in it. */
export const OPENING_FOLDER = 'opening';

/** The folder of an unfinished compaction inside that of the store. */
export const COPY_FOLDER = 'compacting';

/** A file of the base table is compacted when more than this is free in it, in bytes, and more than half of it. */
export const COMPACT_BYTES = 256 * 1024 * 1024;

/** Begins the name of a folder that is being removed. */
const REMOVED = 'removed-';

const LOG_FOLDER = /^log(?:-(\d+))?$/;

/** The folder of a generation of the log inside that of the store. A new store begins with generation 0. */
export function logFolder(generation: number): string {
  return generation === 0 ? 'log' : `log-${generation}`;
}

/**
 * The generations of the log that have a folder in the store at `path`, in order. Interrupted rotations may have left
 * the last ones.
 */
export function logGenerations(path: string): readonly number[] {
  const found = readdirSync(path)
    .map((name) => LOG_FOLDER.exec(name))
    .filter((match) => match !== null);
  return found.map(([, generation]) => Number(generation ?? 0)).sort((a, b) => a - b);
}

/** The data files of the store in folder `path`. */
export function storeFiles(path: string): readonly string[] {
  return [
    join(path, DATA_FILE),
    ...logGenerations(path).map((generation) => join(path, logFolder(generation), DATA_FILE)),
  ];
}

/**
 * Removes the folder of a log that no process needs. It is renamed first, so that it disappears at once: if files of an
 * LMDB environment were removed while another process opens it, LMDB could use a lock file and a data file that do not
 * belong together.
 */
export function removeLog(path: string, generation: number): void {
  renameSync(join(path, logFolder(generation)), join(path, `${REMOVED}${logFolder(generation)}`));
  finishRemovals(path);
}

/** Removes what an interrupted `removeLog` has left. */
export function finishRemovals(path: string): void {
  for (const name of readdirSync(path))
    if (name.startsWith(REMOVED)) rmSync(join(path, name), { recursive: true, force: true });
}

/**
 * Whether the store in folder `path`, which need not exist, may need a compaction, or an interrupted one has left its
 * copy.
 */
export function isCompactable(path: string): boolean {
  return (
    (statSync(join(path, DATA_FILE), { throwIfNoEntry: false })?.size ?? 0) > COMPACT_BYTES ||
    existsSync(join(path, COPY_FOLDER))
  );
}
