import { createReadStream } from 'node:fs';
import { nameFile } from '../../lib/errno.ts';
import { isCutOff } from './env/file-check.ts';
import { storeFiles } from './env/store-files.ts';

/**
 * Reads the data files of the store in folder `path` without LMDB. Resolves with one that is shorter than it says, so
 * that reading the missing part would end a process with SIGBUS; null if there is none. A log that is replaced and
 * removed meanwhile is left out.
 *
 * @throws {NodeJS.ErrnoException} with `path` if a file cannot be read
 */
export async function readStoreFiles(path: string): Promise<string | null> {
  for (const file of storeFiles(path)) {
    try {
      for await (const _ of createReadStream(file)) continue;
      if (isCutOff(file)) return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw nameFile(error, file);
    }
  }
  return null;
}
