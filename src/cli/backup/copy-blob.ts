import type { Blobs } from '../../ports/blobs.ts';
import { type CopyResult, copyBytes, withOpenFile, writeNew } from './copy-file.ts';

/**
 * Copies a blob to a file that must not exist, and flushes it. Returns null if the blob does not exist.
 *
 * @throws the reason of `signal` soon after it is aborted; the file may exist then
 */
export async function blobToFile(
  blobs: Blobs,
  environmentId: string,
  name: string,
  to: string,
  signal: AbortSignal,
): Promise<CopyResult | null> {
  signal.throwIfAborted();
  const source = await blobs.open(environmentId, name).catch(async (error: unknown) => {
    if ((await blobs.stat(environmentId, name)) === undefined) return null;
    throw error;
  });
  if (source === null) return null;
  try {
    return await writeNew(to, (append) =>
      copyBytes(source, (chunk) => {
        signal.throwIfAborted();
        return append(chunk);
      }),
    );
  } finally {
    await source.close();
  }
}

/**
 * Copies a file to a blob if it has this SHA-256 (hex). Returns its size in bytes; null if it is missing or differs,
 * and then there is no blob.
 */
export function fileToBlob(
  from: string,
  sha256: string,
  blobs: Blobs,
  environmentId: string,
  name: string,
): Promise<number | null> {
  return withOpenFile(from, async (source) => {
    const staged = await blobs.stage(environmentId, name);
    try {
      const copied = await copyBytes(source, (chunk) => staged.write(chunk));
      if (copied.sha256 !== sha256) return null;
      await staged.commit();
      return copied.bytes;
    } finally {
      await staged.discard();
    }
  });
}
