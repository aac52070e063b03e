import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import {
  type BlobReader,
  type Blobs,
  type BlobStat,
  checkedBlobName,
  type RetentionLease,
  type StagedBlob,
} from '../../ports/blobs.ts';
import { FolderSync } from './folder-sync.ts';
import { createRetentionLease, RetentionLeases } from './retention-leases.ts';
import { asStorageError, isMissing, readAt, LocalStagedBlob } from './local-staged-blob.ts';
import { entries, requireFreeSpace, sweepFolder } from './staging-folder.ts';
import { makeFolder } from '../../lib/files/make-folder.ts';

/** Where blobs are stored. */
export interface LocalBlobsOptions {
  /** The folder of all files; created by the first upload, or check that uploads are possible. */
  readonly path: string;
  /** Nothing is staged while its disk has less free space than this, in bytes. */
  readonly minFreeBytes: number;
  /** By which retention leases expire; that of this machine if absent. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
}

const STAGING = '.staging';
/** The folder of the retention leases. Its name is older than that term. */
const LEASES_FOLDER = '.holds';
/** How the folders of environments that are being removed begin. */
const REMOVED = '.removed-';
/**
 * Files whose names begin alike share a folder. Ids begin with their time, so concurrent uploads share a flush of the
 * folder.
 */
const FOLDER_LETTERS = 10;
const SPACE_CHECK_MS = 1_000;
/** How often a file is moved into its folder, which other processes may remove before. */
const MOVE_ATTEMPTS = 20;

/**
 * Blobs as files: `<path>/<environment>/<first letters of the name>/<name>`. Any number of processes may share the
 * folder.
 */
export class LocalBlobs implements Blobs {
  readonly #options: LocalBlobsOptions;
  readonly #folders = new FolderSync();
  readonly #leases: RetentionLeases;
  /** Folders that this process knows to exist and to be flushed. */
  readonly #known = new Set<string>();
  #spaceCheckedAt = -Infinity;

  constructor(options: LocalBlobsOptions) {
    this.#options = options;
    this.#leases = new RetentionLeases(join(options.path, LEASES_FOLDER), options.clock ?? systemClock);
  }

  async stage(environmentId: string, name: string): Promise<StagedBlob> {
    const file = this.#fileOf(environmentId, name);
    if (performance.now() - this.#spaceCheckedAt > SPACE_CHECK_MS) {
      await this.#checkSpace().catch((error: unknown) => {
        throw asStorageError(error);
      });
    }
    const path = join(this.#options.path, STAGING, randomBytes(12).toString('hex'));
    return LocalStagedBlob.create(path, () => this.#moveIntoPlace(path, file));
  }

  async stat(environmentId: string, name: string): Promise<BlobStat | undefined> {
    try {
      const { size } = await stat(this.#fileOf(environmentId, name));
      return { size };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async open(environmentId: string, name: string): Promise<BlobReader> {
    const path = this.#fileOf(environmentId, name);
    return new LocalReader(path, await open(path, 'r'));
  }

  async remove(environmentId: string, name: string): Promise<void> {
    const file = this.#fileOf(environmentId, name);
    await rm(file, { force: true });
    this.#known.delete(dirname(file));
    // Fails while there are other files in it.
    await rmdir(dirname(file)).catch(() => undefined);
  }

  async *list(environmentId: string): AsyncIterable<string> {
    const top = this.#folderOf(environmentId);
    for (const folder of await entries(top)) {
      if (!folder.isDirectory()) continue;
      for (const file of await entries(join(top, folder.name))) if (file.isFile()) yield file.name;
    }
  }

  async environments(): Promise<string[]> {
    const found = await entries(this.#options.path);
    return found.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map((entry) => entry.name);
  }

  async sweepStaged(ageMs: number, dryRun = false): Promise<number> {
    const folder = join(this.#options.path, STAGING);
    const swept = await sweepFolder(folder, ageMs, dryRun);
    if (dryRun) return swept;
    // Fails while there are files in it.
    await rmdir(folder).catch(() => undefined);
    await this.#removeRenamed();
    return swept;
  }

  retain(): Promise<RetentionLease> {
    return createRetentionLease(join(this.#options.path, LEASES_FOLDER));
  }

  isRetained(): Promise<boolean> {
    return this.#leases.hasActive();
  }

  async removeAll(environmentId: string): Promise<void> {
    // A folder to which another process keeps adding files is never found empty, so it could not be removed by its name.
    const renamed = join(this.#options.path, REMOVED + randomBytes(12).toString('hex'));
    await rename(this.#folderOf(environmentId), renamed).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    await this.#removeRenamed();
  }

  /** Removes what was renamed for it, by this process, by others and by those that ended meanwhile. */
  async #removeRenamed(): Promise<void> {
    for (const { name } of await entries(this.#options.path)) {
      if (!name.startsWith(REMOVED)) continue;
      // Tried again if a file that another process was moving when the folder was renamed arrives in it.
      await rm(join(this.#options.path, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 10 });
    }
  }

  #folderOf(environmentId: string): string {
    return join(this.#options.path, checkedBlobName(environmentId));
  }

  #fileOf(environmentId: string, name: string): string {
    return join(this.#folderOf(environmentId), checkedBlobName(name).slice(0, FOLDER_LETTERS), name);
  }

  async #moveIntoPlace(staged: string, file: string): Promise<void> {
    const folder = dirname(file);
    for (let attempt = 1; ; attempt++) {
      try {
        // Flushed afterwards: the longer it takes, the more often another process removes the folder meanwhile.
        if (!this.#known.has(folder)) await makeFolder(folder);
        await rename(staged, file);
        break;
      } catch (error) {
        // Another process has removed the folder since, because it was empty or with its environment.
        if (!isMissing(error) || attempt === MOVE_ATTEMPTS) throw error;
        this.#known.delete(folder);
      }
    }
    await this.#flush(folder).catch((error: unknown) => {
      // The environment has been removed since, with this blob.
      if (!isMissing(error)) throw error;
      this.#known.delete(folder);
    });
  }

  /** Flushes the names in a folder of blobs, and those of the folder and its parents unless that was done before. */
  async #flush(folder: string): Promise<void> {
    await this.#folders.sync(folder);
    if (this.#known.has(folder)) return;
    for (let created = folder; created !== this.#options.path; created = dirname(created))
      await this.#folders.sync(dirname(created));
    this.#known.add(folder);
  }

  async #checkSpace(): Promise<void> {
    const { path, minFreeBytes } = this.#options;
    const created = await makeFolder(path);
    if (created !== undefined) await this.#folders.sync(dirname(path));
    await requireFreeSpace(path, minFreeBytes);
    this.#spaceCheckedAt = performance.now();
  }
}

class LocalReader implements BlobReader {
  readonly #path: string;
  readonly #handle: FileHandle;

  constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  read(offset: number, length: number): Promise<Buffer> {
    return readAt(this.#path, this.#handle, offset, length);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
