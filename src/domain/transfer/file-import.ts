import { createHash, type Hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import type { StagedBlob } from '../../ports/blobs.ts';
import { type Context, requireFileStorage } from '../context.ts';
import type { LineOf } from './export-format.ts';

interface OpenFile {
  readonly file: LineOf<'file'>['data'];
  readonly staged: StagedBlob;
  readonly hash: Hash;
  bytes: number;
}

/** Writes the files of one environment from the chunks of an export. */
export class FileImport {
  readonly #ctx: Context;
  readonly #environmentId: string;
  #open: OpenFile | null = null;
  #written = 0;

  constructor(ctx: Context, environmentId: string) {
    this.#ctx = ctx;
    this.#environmentId = environmentId;
  }

  /** Begins a file, whose chunks follow. Close the one before it first. */
  async open(file: LineOf<'file'>['data']): Promise<void> {
    const staged = await requireFileStorage(this.#ctx).blobs.stage();
    this.#open = { file, staged, hash: createHash('sha256'), bytes: 0 };
  }

  /** Appends a chunk, given as base64, to the open file. Throws `invalid_request` if there is none. */
  async write(chunk: string): Promise<void> {
    const open = this.#open;
    if (open === null) throw invalid('a chunk must follow the line of its file');
    const bytes = Buffer.from(chunk, 'base64');
    open.bytes += bytes.byteLength;
    open.hash.update(bytes);
    await open.staged.write(bytes);
  }

  /** Stores the open file, if there is one. Throws `invalid_request` unless its chunks have the size and SHA-256 of its line. */
  async close(): Promise<void> {
    const open = this.#open;
    if (open === null) return;
    const { attachment, sha256 } = open.file;
    if (open.bytes !== attachment.sizeBytes || open.hash.digest('hex') !== sha256) {
      throw invalid(`the chunks of the file ${attachment.id} do not have its sizeBytes and sha256`);
    }
    await open.staged.commit(this.#environmentId, attachment.id);
    this.#written++;
    this.#open = null;
  }

  /**
   * Throws `internal` if stored files are missing: a concurrent `collab gc` removes files of environments that do not exist
   * yet as orphans.
   */
  async requireAll(): Promise<void> {
    if (this.#written === 0) return;
    let found = 0;
    for await (const _ of requireFileStorage(this.#ctx).blobs.list(this.#environmentId)) found++;
    if (found < this.#written) throw new CollabError('internal', `${this.#written - found} files were removed while they were imported`);
  }

  /** Discards the open file, if there is one. */
  async discard(): Promise<void> {
    await this.#open?.staged.discard();
    this.#open = null;
  }
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}
