import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MediaFile } from '../../ports/media.ts';

/** Larger images are copied to a temporary file instead of into memory, because the decoder needs all of an image. */
const MAX_BUFFER_BYTES = 16 * 1024 * 1024;
const COPY_BYTES = 1024 * 1024;

/** Runs `work` with the content of a file in the form that sharp reads: a buffer, or the path of a temporary file. */
export async function withImageInput<T>(file: MediaFile, work: (input: Buffer | string) => Promise<T>): Promise<T> {
  if (file.size <= file.head.length) return work(file.head);
  if (file.size <= MAX_BUFFER_BYTES) return work(await file.read(0, file.size));
  const folder = await mkdtemp(join(tmpdir(), 'collab-image-'));
  try {
    const path = join(folder, 'image');
    await copyTo(path, file);
    return await work(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyTo(path: string, file: MediaFile): Promise<void> {
  const target = await open(path, 'wx', 0o600);
  try {
    for (let at = 0; at < file.size; at += COPY_BYTES) await target.writeFile(await file.read(at, COPY_BYTES));
  } finally {
    await target.close();
  }
}
