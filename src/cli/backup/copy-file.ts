import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BlobReader } from '../../ports/blobs.ts';
import { naming } from '../../lib/errno.ts';
import { makeFolder } from '../../lib/files/make-folder.ts';

/** Bytes per read. */
const COPY_BYTES = 1024 * 1024;

/** The result of copying. */
export interface CopyResult {
  /** SHA-256, hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Where bytes are read from, such as a blob. */
export type ByteSource = Pick<BlobReader, 'read'>;

/** Copies a file to a path that must not exist, and flushes it. Returns null if the file no longer exists. */
export function copyFile(from: string, to: string): Promise<CopyResult | null> {
  return withOpenFile(from, (source) => writeNew(to, (write) => copyBytes(source, write)));
}

/** Opens a file, runs `work` and closes the file. Returns null if it does not exist. */
export async function withOpenFile<T>(path: string, work: (source: ByteSource) => Promise<T>): Promise<T | null> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return null;
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const reading = file.read(Buffer.allocUnsafeSlow(length), 0, length, offset);
    const { buffer, bytesRead } = await naming(path, reading);
    return buffer.subarray(0, bytesRead);
  };
  try {
    return await work({ read });
  } finally {
    await file.close();
  }
}

/**
 * Creates a file, and its folder if necessary, runs `work`, which appends to it, and flushes and closes the file.
 * Rejects if the file exists. Errors of its calls name it.
 */
export async function writeNew<T>(
  path: string,
  work: (append: (chunk: Buffer) => Promise<void>) => Promise<T>,
): Promise<T> {
  await makeFolder(dirname(path));
  const target = await open(path, 'wx', 0o600);
  try {
    const result = await work((chunk) => naming(path, target.writeFile(chunk)));
    await naming(path, target.datasync());
    return result;
  } finally {
    await target.close();
  }
}

/** Reads all bytes of `source` and passes them to `write` in order. */
export async function copyBytes(source: ByteSource, write: (chunk: Buffer) => Promise<void>): Promise<CopyResult> {
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

/** The SHA-256 (hex) of a file. */
export async function sha256Of(file: string, onBytes: (bytes: number) => void = () => {}): Promise<string> {
  const hash: Hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { highWaterMark: COPY_BYTES }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    onBytes(chunk.byteLength);
  }
  return hash.digest('hex');
}

/** The size of a file in bytes; 0 if it does not exist. */
export async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}
