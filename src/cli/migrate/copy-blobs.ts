import { RecordedFiles } from '../../domain/files/recorded-files.ts';
import { thumbnailName } from '../../domain/files/file-jobs.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { StoredRecord } from '../../ports/store-transfer.ts';
import { copyBytes, type CopyResult } from '../backup/copy-file.ts';
import { Failure } from '../failure.ts';

/** The uploaded files of a move. */
export class BlobCopy {
  /** Files of the source, also thumbnails, that are in the target, with their bytes. */
  files = 0;
  bytes = 0;
  /** Files that differ from the SHA-256 in their record already in the source, as `environment/file`. */
  readonly damaged: string[] = [];
  readonly #source: Blobs;
  readonly #target: Blobs;
  readonly #step: () => void;
  readonly #recorded = new RecordedFiles();
  readonly #copied = new Set<string>();
  /** Files that records name which were written since the last `copyNamed`. */
  #named: [environmentId: string, fileId: string][] = [];

  /** @param step called after each chunk of a file; throws to end the copy */
  constructor(source: Blobs, target: Blobs, step: () => void) {
    this.#source = source;
    this.#target = target;
    this.#step = step;
  }

  /** Learns of a record of the source; `isNew` if it was written to the target now. */
  add({ partition, key, value }: StoredRecord, isNew: boolean): void {
    this.#recorded.add(partition, key, value);
    const [, environmentId] = /^e\/([^/]+)\/files$/.exec(partition) ?? [];
    if (isNew && environmentId !== undefined) this.#named.push([environmentId, key]);
  }

  /** Copies every file of the source, and removes those from the target that the source has not. */
  async copyAll(): Promise<void> {
    this.#named = [];
    for (const environmentId of await this.#source.environments())
      for await (const name of this.#source.list(environmentId)) await this.#copy(environmentId, name);
    for (const environmentId of await this.#target.environments())
      for await (const name of this.#target.list(environmentId))
        if (!this.#copied.has(`${environmentId}/${name}`)) await this.#target.remove(environmentId, name);
  }

  /** Copies the files, with their thumbnails, that records name which were written since the last call. */
  async copyNamed(): Promise<void> {
    for (const [environmentId, fileId] of this.#named.splice(0))
      for (const name of [fileId, thumbnailName(fileId)]) await this.#copy(environmentId, name);
  }

  /** The recorded files that are not in the target because the source does not have them. */
  *missing(): Iterable<readonly [environmentId: string, fileId: string]> {
    for (const [environmentId, fileId] of this.#recorded.all())
      if (!this.#copied.has(`${environmentId}/${fileId}`)) yield [environmentId, fileId];
  }

  async #copy(environmentId: string, name: string): Promise<void> {
    const path = `${environmentId}/${name}`;
    if (this.#copied.has(path)) return;
    const stat = await this.#source.stat(environmentId, name);
    if (stat === undefined) return;
    const existing = await this.#target.stat(environmentId, name);
    let read: CopyResult;
    // A file of an earlier run: the same name and size are not enough.
    if (existing?.size === stat.size) {
      read = await this.#hash(this.#source, environmentId, name);
      if (read.sha256 !== (await this.#hash(this.#target, environmentId, name)).sha256)
        read = await this.#write(environmentId, name);
    } else read = await this.#write(environmentId, name);
    const expected = this.#recorded.hashOf(environmentId, name);
    if (expected !== undefined && expected !== read.sha256) this.damaged.push(path);
    this.#copied.add(path);
    this.files++;
    this.bytes += read.bytes;
  }

  /** Writes a file and reads it back. */
  async #write(environmentId: string, name: string): Promise<CopyResult> {
    const source = await this.#source.open(environmentId, name);
    let written: CopyResult;
    try {
      const staged = await this.#target.stage(environmentId, name);
      try {
        written = await copyBytes(source, (chunk) => {
          this.#step();
          return staged.write(chunk);
        });
        await staged.commit();
      } finally {
        await staged.discard();
      }
    } finally {
      await source.close();
    }
    const copied = await this.#hash(this.#target, environmentId, name);
    if (copied.sha256 !== written.sha256)
      throw new Failure(`The file ${environmentId}/${name} differs in the target from what was written.`, [
        'Check the disk and the logs of the target, and run the command again.',
      ]);
    return written;
  }

  async #hash(blobs: Blobs, environmentId: string, name: string): Promise<CopyResult> {
    const reader = await blobs.open(environmentId, name);
    try {
      return await copyBytes(reader, () => Promise.resolve(this.#step()));
    } finally {
      await reader.close();
    }
  }
}
