import { statSync } from 'node:fs';

/**
 * Whether there is a file or folder at `path`.
 *
 * @throws {NodeJS.ErrnoException} with `path` if that cannot be seen, such as EACCES: `existsSync` would say no then
 */
export function exists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // A file is on the way, so nothing can be there.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}
