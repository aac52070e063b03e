import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { MEGABYTE } from '../../lib/bytes.ts';
import type { Clock } from '../../lib/clock.ts';
import { makeFolder } from '../../lib/files/make-folder.ts';
import {
  type BlobReader,
  type Blobs,
  type BlobStat,
  checkedBlobName,
  type RetentionLease,
  type StagedBlob,
} from '../../ports/blobs.ts';
import { asStorageError } from '../localfiles/local-staged-blob.ts';
import { requireFreeSpace, sweepFolder } from '../localfiles/staging-folder.ts';
import type { S3Client } from './client/client.ts';
import { abortUpload, listUploads } from './multipart.ts';
import { deleteObject, listObjects, sizeOf } from './objects.ts';
import { ReadAhead, S3Reader } from './reader.ts';
import { asBlobError } from './refusals.ts';
import { S3RetentionLeases } from './retention-leases.ts';
import { S3StagedBlob } from './staged-blob.ts';

/** Where files are staged. */
export interface StagingOptions {
  /** A folder of this machine, created by the first upload. Processes of the machine may share it. */
  readonly folder: string;
  /** Nothing is staged while its disk has less free space than this, in bytes. */
  readonly minFreeBytes: number;
  /** Larger blobs are uploaded in parts of this size; 8 MiB if absent. Stores demand at least 5 MiB. */
  readonly partBytes?: number;
}

const PART_BYTES = 8 * MEGABYTE;
const FILES = 'files/';
const SPACE_CHECK_MS = 1_000;
const REMOVALS = 8;

/** Blobs as objects `<prefix>files/<environment>/<name>`. Any number of machines may share the bucket. */
export class S3Blobs implements Blobs {
  readonly #client: S3Client;
  readonly #staging: StagingOptions;
  readonly #leases: S3RetentionLeases;
  readonly #ahead = new ReadAhead();
  #spaceCheckedAt = -Infinity;

  /** @param clock by which retention leases expire */
  constructor(client: S3Client, staging: StagingOptions, clock: Pick<Clock, 'monotonic'>) {
    this.#client = client;
    this.#staging = staging;
    this.#leases = new S3RetentionLeases(client, clock);
  }

  /** Closes the connections. Calls that are under way reject. */
  close(): void {
    this.#client.close();
  }

  async stage(environmentId: string, name: string): Promise<StagedBlob> {
    const key = keyOf(environmentId, name);
    if (performance.now() - this.#spaceCheckedAt > SPACE_CHECK_MS) await this.#checkSpace();
    const { folder, partBytes = PART_BYTES } = this.#staging;
    return S3StagedBlob.create(this.#client, key, { path: join(folder, randomBytes(12).toString('hex')), partBytes });
  }

  async stat(environmentId: string, name: string): Promise<BlobStat | undefined> {
    const size = await asBlobError(sizeOf(this.#client, keyOf(environmentId, name)));
    return size === undefined ? undefined : { size };
  }

  async open(environmentId: string, name: string): Promise<BlobReader> {
    return asBlobError(S3Reader.open(this.#client, keyOf(environmentId, name), this.#ahead));
  }

  async remove(environmentId: string, name: string): Promise<void> {
    await asBlobError(deleteObject(this.#client, keyOf(environmentId, name)));
  }

  async *list(environmentId: string): AsyncIterable<string> {
    const folder = folderOf(environmentId);
    const pages = listObjects(this.#client, folder)[Symbol.asyncIterator]();
    for (;;) {
      const page = await asBlobError(pages.next());
      if (page.done === true) return;
      yield* page.value.keys.map((key) => key.slice(folder.length));
    }
  }

  environments(): Promise<string[]> {
    return asBlobError(this.#environments());
  }

  async sweepStaged(ageMs: number, dryRun = false): Promise<number> {
    const files = await sweepFolder(this.#staging.folder, ageMs, dryRun);
    return files + (await asBlobError(this.#sweepUploads(ageMs, dryRun)));
  }

  retain(): Promise<RetentionLease> {
    return this.#leases.create();
  }

  isRetained(): Promise<boolean> {
    return asBlobError(this.#leases.hasActive());
  }

  async removeAll(environmentId: string): Promise<void> {
    await asBlobError(this.#removeAll(folderOf(environmentId)));
  }

  async #checkSpace(): Promise<void> {
    const { folder, minFreeBytes } = this.#staging;
    try {
      await makeFolder(folder);
      await requireFreeSpace(folder, minFreeBytes);
    } catch (error) {
      throw asStorageError(error);
    }
    this.#spaceCheckedAt = performance.now();
  }

  async #environments(): Promise<string[]> {
    const found: string[] = [];
    for await (const { folders } of listObjects(this.#client, FILES, '/'))
      found.push(...folders.map((folder) => folder.slice(FILES.length, -1)));
    return found;
  }

  async #sweepUploads(ageMs: number, dryRun: boolean): Promise<number> {
    const uploads = await listUploads(this.#client, FILES, ageMs);
    if (!dryRun) for (const upload of uploads) await abortUpload(this.#client, upload);
    return uploads.length;
  }

  async #removeAll(folder: string): Promise<void> {
    for await (const { keys } of listObjects(this.#client, folder)) {
      const rest = keys.values();
      const remover = async (): Promise<void> => {
        for (const key of rest) await deleteObject(this.#client, key);
      };
      await Promise.all(Array.from({ length: REMOVALS }, remover));
    }
  }
}

const folderOf = (environmentId: string): string => `${FILES}${checkedBlobName(environmentId)}/`;
const keyOf = (environmentId: string, name: string): string => folderOf(environmentId) + checkedBlobName(name);
