import { createHash, type Hash } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { naming } from '../../lib/errno.ts';
import type { StagedBlob } from '../../ports/blobs.ts';
import { asStorageError, openNew, readAt } from '../localfiles/local-staged-blob.ts';
import type { HashedBody, S3Client } from './client/client.ts';
import { putObject } from './objects.ts';
import { PartsUpload } from './parts-upload.ts';
import { asBlobError } from './refusals.ts';

const PIECE_BYTES = 128 * 1024;

/** How a blob is staged. */
export interface StagedBlobOptions {
  /** Of its file, which does not exist. */
  readonly path: string;
  /** The size of each part but the last one; a smaller blob is one request. */
  readonly partBytes: number;
}

/**
 * A blob in a file of this machine. Its parts are uploaded while it is written, and its last bytes when it is
 * committed, which makes it visible.
 */
export class S3StagedBlob implements StagedBlob {
  readonly #client: S3Client;
  readonly #key: string;
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #partBytes: number;
  readonly #parts: PartsUpload;
  /** Of the part that is being written. */
  #hash: Hash = createHash('sha256');
  #size = 0;
  #partStart = 0;
  #isOpen = true;
  /** Whether the file and the hash may differ, or a commit has begun: it can only be discarded. */
  #isSpoilt = false;
  #isCommitted = false;

  private constructor(client: S3Client, key: string, { path, partBytes }: StagedBlobOptions, handle: FileHandle) {
    this.#client = client;
    this.#key = key;
    this.#path = path;
    this.#handle = handle;
    this.#partBytes = partBytes;
    this.#parts = new PartsUpload(client, key);
  }

  /** Creates the file. Rejects with `storage_full` or `storage_failed` if the disk refuses. */
  static async create(client: S3Client, key: string, options: StagedBlobOptions): Promise<S3StagedBlob> {
    try {
      return new S3StagedBlob(client, key, options, await openNew(options.path));
    } catch (error) {
      throw asStorageError(error);
    }
  }

  async write(chunk: Uint8Array): Promise<void> {
    try {
      await naming(this.#path, this.#handle.writeFile(chunk));
    } catch (error) {
      this.#isSpoilt = true;
      throw asStorageError(error);
    }
    for (let rest = chunk; rest.length > 0;) {
      // Not earlier: until there is one byte more, it may be the whole blob.
      if (this.#size - this.#partStart === this.#partBytes) this.#parts.add(this.#endPart());
      const taken = rest.subarray(0, this.#partStart + this.#partBytes - this.#size);
      this.#hash.update(taken);
      this.#size += taken.length;
      rest = rest.subarray(taken.length);
    }
  }

  read(offset: number, length: number): Promise<Buffer> {
    return readAt(this.#path, this.#handle, offset, length);
  }

  async flush(): Promise<void> {
    // The file need not survive a power cut: until `commit`, nobody relies on it.
    await asBlobError(this.#parts.settled());
  }

  async commit(): Promise<void> {
    // A sweep has removed it: its writer was taken for gone.
    await stat(this.#path);
    if (this.#isSpoilt) throw new Error('a write or a commit of the blob has failed');
    this.#isSpoilt = true;
    const last = this.#endPart();
    if (this.#parts.isEmpty) await asBlobError(putObject(this.#client, this.#key, last));
    else {
      this.#parts.add(last);
      await asBlobError(this.#parts.complete(this.#size));
    }
    this.#isCommitted = true;
    await this.#remove();
  }

  async discard(): Promise<void> {
    if (this.#isCommitted) return;
    try {
      await this.#parts.abort();
    } finally {
      await this.#remove();
    }
  }

  /** Ends the part that was being written, which has the bytes since the one before. */
  #endPart(): HashedBody {
    const [start, length] = [this.#partStart, this.#size - this.#partStart];
    const sha256 = this.#hash.digest('hex');
    this.#hash = createHash('sha256');
    this.#partStart = this.#size;
    return { length, sha256, chunks: () => this.#piecesOf(start, start + length) };
  }

  async *#piecesOf(start: number, end: number): AsyncIterable<Uint8Array> {
    for (let offset = start; offset < end; offset += PIECE_BYTES)
      yield await readAt(this.#path, this.#handle, offset, Math.min(PIECE_BYTES, end - offset));
  }

  async #remove(): Promise<void> {
    if (this.#isOpen) {
      this.#isOpen = false;
      // A disk that fails may report it again here; the contents are of no use any more.
      await this.#handle.close().catch(() => undefined);
    }
    await rm(this.#path, { force: true });
  }
}
