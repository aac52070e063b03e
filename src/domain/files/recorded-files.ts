import type { StoredFile } from '../../model/attachment.ts';
import { fileOfThumbnail } from './file-jobs.ts';
import { ENVIRONMENTS } from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';

/** The files that a store has records of, collected record by record. */
export class RecordedFiles {
  readonly #environments = new Set<string>();
  /** Environment id -> file id -> SHA-256, hex. */
  readonly #hashes = new Map<string, Map<string, string>>();

  /** Adds a stored record. Records of other kinds have no effect. */
  add(partition: string, key: string, value: string): void {
    if (partition === ENVIRONMENTS) this.#environments.add(key);
    const [, environmentId] = /^e\/([^/]+)\/files$/.exec(partition) ?? [];
    if (environmentId === undefined) return;
    const files = this.#hashes.get(environmentId) ?? new Map<string, string>();
    this.#hashes.set(environmentId, files.set(key, parseRecord<StoredFile>(value).sha256));
  }

  /** Whether a blob is a recorded file or the thumbnail of one. Valid once every record was added. */
  has(environmentId: string, blob: string): boolean {
    return this.#filesOf(environmentId).has(fileOfThumbnail(blob));
  }

  /** The SHA-256 (hex) that a blob must have; undefined for a thumbnail and for a blob without a record. */
  hashOf(environmentId: string, blob: string): string | undefined {
    return this.#filesOf(environmentId).get(blob);
  }

  /** All files of existing environments. Files of unfinished imports and deletions are left out. */
  *all(): Iterable<readonly [environmentId: string, fileId: string]> {
    for (const environmentId of this.#environments)
      for (const fileId of this.#filesOf(environmentId).keys()) yield [environmentId, fileId];
  }

  #filesOf(environmentId: string): ReadonlyMap<string, string> {
    return (this.#environments.has(environmentId) ? this.#hashes.get(environmentId) : undefined) ?? new Map();
  }
}
