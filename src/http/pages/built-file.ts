import { readFile } from 'node:fs/promises';

const loaded = new Map<string, Promise<Buffer>>();

/**
 * A file that build.mjs made, by its path in `dist`; read once. As part of the bundle, this module is one folder below
 * dist; run from source, in tests, it reads the same files. Rejects if the file was not built.
 */
export function builtFile(path: string): Promise<Buffer> {
  let bytes = loaded.get(path);
  if (bytes === undefined) {
    const dist = import.meta.url.endsWith('.ts') ? '../../../dist/' : '../';
    bytes = readFile(new URL(dist + path, import.meta.url));
    // A failure is not cached: the file may be missing only because a build is in progress.
    bytes.catch(() => loaded.delete(path));
    loaded.set(path, bytes);
  }
  return bytes;
}
