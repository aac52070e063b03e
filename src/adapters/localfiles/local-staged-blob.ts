import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { naming } from '../../lib/errno.ts';
import { diskRefusalOf } from '../../model/disk-refusal.ts';
import type { StagedBlob } from '../../ports/blobs.ts';
import { makeFolder } from '../../lib/files/make-folder.ts';

/** Moves the finished file to its final path, durably. */
export type MoveIntoPlace = () => Promise<void>;

const ATTEMPTS = 3;

/** A file in the staging folder. */
export class LocalStagedBlob implements StagedBlob {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #moveIntoPlace: MoveIntoPlace;
  #open = true;
  #placed = false;
  #flushed = false;

  private constructor(path: string, handle: FileHandle, moveIntoPlace: MoveIntoPlace) {
    this.#path = path;
    this.#handle = handle;
    this.#moveIntoPlace = moveIntoPlace;
  }

  /**
   * Creates a file at `path`, and its folder if that is missing. Rejects with `storage_full` on a full disk, and with
   * `storage_failed` if the disk refuses otherwise.
   */
  static async create(path: string, moveIntoPlace: MoveIntoPlace): Promise<LocalStagedBlob> {
    try {
      return new LocalStagedBlob(path, await openNew(path), moveIntoPlace);
    } catch (error) {
      throw asStorageError(error);
    }
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#flushed = false;
    try {
      await this.#handle.writeFile(chunk);
    } catch (error) {
      throw asStorageError(error);
    }
  }

  read(offset: number, length: number): Promise<Buffer> {
    return readAt(this.#path, this.#handle, offset, length);
  }

  async flush(): Promise<void> {
    try {
      await this.#handle.datasync();
      this.#flushed = true;
    } catch (error) {
      throw asStorageError(error);
    }
  }

  async commit(): Promise<void> {
    if (!this.#flushed) await this.flush();
    try {
      await this.#close();
      await this.#moveIntoPlace();
      this.#placed = true;
    } catch (error) {
      throw asStorageError(error);
    }
  }

  async discard(): Promise<void> {
    if (this.#placed) return;
    // A disk that fails may report it again here; the contents are of no use any more.
    await this.#close().catch(() => undefined);
    await rm(this.#path, { force: true });
  }

  async #close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.#handle.close();
  }
}

/** Opens a new file, for reading and writing, and creates its folder if that is missing. */
export async function openNew(path: string): Promise<FileHandle> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(path, 'wx+', 0o600);
    } catch (error) {
      // A sweep may remove the folder, when it is empty, right after it was created.
      if (!isMissing(error) || attempt === ATTEMPTS) throw error;
      await makeFolder(dirname(path));
    }
  }
}

/** Reads `length` bytes at `offset`, fewer only at the end of the file. Errors name the file. */
export async function readAt(path: string, handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await naming(path, handle.read(buffer, filled, length - filled, offset + filled));
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Whether a call failed because a file or folder is missing. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Converts an error of the disk to `storage_full` or `storage_failed`; returns any other error as it is. */
export function asStorageError(error: unknown): unknown {
  return diskRefusalOf(error) ?? error;
}
