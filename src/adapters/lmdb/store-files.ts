import { join } from 'node:path';

/** The file of an LMDB environment in its folder; the other one is made anew when it is opened. */
export const DATA_FILE = 'data.mdb';

/** The folder of the log inside that of the store. */
export const LOG_FOLDER = 'log';

/** The folder of the lock of an environment inside that of the environment (opening-lock.ts); nothing is stored in it. */
export const OPENING_FOLDER = 'opening';

/** The files that hold the store in folder `path`. */
export function storeFiles(path: string): readonly string[] {
  return [join(path, DATA_FILE), join(path, LOG_FOLDER, DATA_FILE)];
}
