import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The data file of an LMDB environment in its folder. LMDB creates the other one, the lock file, whenever it is missing. */
export const DATA_FILE = 'data.mdb';

/** The folder of the opening lock (opening-lock.ts) inside that of its environment; nothing is stored in it. */
export const OPENING_FOLDER = 'opening';

const LOG_FOLDER = /^log(?:-(\d+))?$/;

/** The folder of a generation of the log inside that of the store. A new store begins with generation 0. */
export function logFolder(generation: number): string {
  return generation === 0 ? 'log' : `log-${generation}`;
}

/** The generations of the log that have a folder in the store at `path`, in order. Interrupted rotations may have left the last ones. */
export function logGenerations(path: string): readonly number[] {
  const found = readdirSync(path).map((name) => LOG_FOLDER.exec(name)).filter((match) => match !== null);
  return found.map(([, generation]) => Number(generation ?? 0)).sort((a, b) => a - b);
}

/** The data files of the store in folder `path`. */
export function storeFiles(path: string): readonly string[] {
  return [join(path, DATA_FILE), ...logGenerations(path).map((generation) => join(path, logFolder(generation), DATA_FILE))];
}
