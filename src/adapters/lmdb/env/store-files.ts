import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The file of an LMDB environment in its folder; the other one is made anew when it is opened. */
export const DATA_FILE = 'data.mdb';

/** The folder of the lock of an environment inside that of the environment (opening-lock.ts); nothing is stored in it. */
export const OPENING_FOLDER = 'opening';

const LOG_FOLDER = /^log(?:-(\d+))?$/;

/** The folder of a generation of the log inside that of the store: 0 is the one that a new store begins with. */
export function logFolder(generation: number): string {
  return generation === 0 ? 'log' : `log-${generation}`;
}

/** The generations of the log that have a folder in the store at `path`, in order. The last ones may have been abandoned. */
export function logGenerations(path: string): readonly number[] {
  const found = readdirSync(path).map((name) => LOG_FOLDER.exec(name)).filter((match) => match !== null);
  return found.map(([, generation]) => Number(generation ?? 0)).sort((a, b) => a - b);
}

/** The files that hold the store in folder `path`. */
export function storeFiles(path: string): readonly string[] {
  return [join(path, DATA_FILE), ...logGenerations(path).map((generation) => join(path, logFolder(generation), DATA_FILE))];
}
