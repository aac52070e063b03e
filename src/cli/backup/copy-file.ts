import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const COPY_BYTES = 1024 * 1024;

/** Copies a file to a path that must not exist, and flushes it. Returns its SHA-256 (hex) and size; null if the file no longer exists. */
export async function copyFile(from: string, to: string, onBytes: (bytes: number) => void = () => {}): Promise<{ sha256: string; bytes: number } | null> {
  const source = await open(from, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (source === null) return null;
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const target = await open(to, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of source.createReadStream({ autoClose: false, highWaterMark: COPY_BYTES }) as AsyncIterable<Buffer>) {
        hash.update(chunk);
        for (let at = 0; at < chunk.byteLength; ) at += (await target.write(chunk, at)).bytesWritten;
        bytes += chunk.byteLength;
        onBytes(chunk.byteLength);
      }
      await target.datasync();
      return { sha256: hash.digest('hex'), bytes };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
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
