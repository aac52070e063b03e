import { join } from 'node:path';

/** The compiled form, below `folder`, of a test file or fixture named by its path from the project's top. */
export function compiledPath(folder: string, file: string): string {
  return join(folder, file.replace(/\.ts$/, '.js'));
}
