import { statSync } from 'node:fs';

/**
 * Whether there is a file or folder at `path`.
 *
 * @throws {NodeJS.ErrnoException} with `path` if that cannot be seen, such as EACCES: `existsSync` would say no then
 */
export function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
