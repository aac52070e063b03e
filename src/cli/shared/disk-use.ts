import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** The size of a block in `stat`, whatever the file system uses. */
const BLOCK_BYTES = 512;

/**
 * The bytes that a folder with all its contents takes on the disk; 0 if there is none. Files that are removed meanwhile
 * are left out.
 */
export async function diskUse(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    const path = join(folder, entry.name);
    bytes += entry.isDirectory()
      ? await diskUse(path)
      : await lstat(path).then(
          ({ blocks }) => blocks * BLOCK_BYTES,
          () => 0,
        );
  }
  return bytes;
}
