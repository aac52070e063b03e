import { createHash } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BlobReader, Blobs } from '../../ports/blobs.ts';

const COPY_BYTES = 1024 * 1024;

/** The result of copying. */
export interface Copied {
  /** SHA-256, hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * Copies a blob to a file that must not exist, and flushes it. Returns null if the blob does not exist.
 *
 * @throws the reason of `signal` soon after it is aborted; the file may exist then
 */
export async function blobToFile(blobs: Blobs, environmentId: string, name: string, to: string, signal: AbortSignal): Promise<Copied | null> {
  signal.throwIfAborted();
  const source = await blobs.open(environmentId, name).catch(async (error: unknown) => {
    if ((await blobs.stat(environmentId, name)) === undefined) return null;
    throw error;
  });
  if (source === null) return null;
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const target = await open(to, 'wx', 0o600);
    try {
      const copied = await copy(source, (chunk) => {
        signal.throwIfAborted();
        return target.writeFile(chunk);
      });
      await target.datasync();
      return copied;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/**
 * Copies a file to a blob if it has this SHA-256 (hex). Returns its size in bytes; null if it is missing or differs, and
 * then there is no blob.
 */
export async function fileToBlob(from: string, sha256: string, blobs: Blobs, environmentId: string, name: string): Promise<number | null> {
  const source = await open(from, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (source === null) return null;
  const staged = await blobs.stage();
  try {
    const read = async (offset: number, length: number): Promise<Buffer> => {
      const { buffer, bytesRead } = await source.read(Buffer.allocUnsafeSlow(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    };
    const copied = await copy({ read }, (chunk) => staged.write(chunk));
    if (copied.sha256 !== sha256) return null;
    await staged.commit(environmentId, name);
    return copied.bytes;
  } finally {
    await Promise.all([staged.discard(), source.close()]);
  }
}

async function copy(source: Pick<BlobReader, 'read'>, write: (chunk: Buffer) => Promise<void>): Promise<Copied> {
  const hash = createHash('sha256');
  let bytes = 0;
  for (;;) {
    const chunk = await source.read(bytes, COPY_BYTES);
    if (chunk.length === 0) return { sha256: hash.digest('hex'), bytes };
    hash.update(chunk);
    await write(chunk);
    bytes += chunk.length;
  }
}
