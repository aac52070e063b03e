import { CollabError } from '../../model/errors.ts';
import { userKey } from '../access/access.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { StagedFile } from '../files/staged-file.ts';
import type { LineOf } from './export-format.ts';
import { ImportError } from './import-error.ts';

/** The file whose chunks are being read, and the number of its line. */
interface OpenFile {
  readonly data: LineOf<'file'>['data'];
  readonly line: number;
  readonly staged: StagedFile;
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

  /** Begins a file, whose chunks follow. Close the one before it first. `line` is the number of its line. */
  async open(data: LineOf<'file'>['data'], line: number): Promise<void> {
    const blob = await requireFileStorage(this.#ctx).blobs.stage(this.#environmentId, data.attachment.id);
    this.#open = { data, line, staged: new StagedFile(blob) };
  }

  /** Appends a chunk, given as base64, to the open file. Throws `invalid_request` if there is none. */
  async write(chunk: string): Promise<void> {
    if (this.#open === null) throw new CollabError('invalid_request', 'a chunk must follow the line of its file');
    await this.#open.staged.write(Buffer.from(chunk, 'base64'));
  }

  /**
   * Stores the open file, if there is one. Throws an `ImportError` with `invalid_request` unless its chunks have the
   * size and SHA-256 of its line, and with `unsupported_media` if they contradict the MIME type of its line.
   */
  async close(): Promise<void> {
    if (this.#open === null) return;
    const { data, line, staged } = this.#open;
    const { mimeType, sizeBytes } = data.attachment;
    if (staged.size !== sizeBytes || staged.sha256() !== data.sha256) {
      throw new ImportError(
        line,
        'invalid_request',
        'data.attachment.sizeBytes and data.sha256 must be those of the chunks',
      );
    }
    const contradiction = await staged.contradictionOf(
      mimeType,
      'as declared',
      requireFileStorage(this.#ctx).media,
      userKey(this.#environmentId, data.uploadedBy),
    );
    if (contradiction !== null)
      throw new ImportError(line, 'unsupported_media', `data.attachment.mimeType is wrong. ${contradiction}`);
    await staged.commit();
    this.#written++;
    this.#open = null;
  }

  /**
   * Throws `internal` if stored files are missing: a concurrent `collab gc` removes files of environments that do not
   * exist yet as orphans.
   */
  async requireAll(): Promise<void> {
    if (this.#written === 0) return;
    let found = 0;
    for await (const _ of requireFileStorage(this.#ctx).blobs.list(this.#environmentId)) found++;
    if (found < this.#written)
      throw new CollabError('internal', `${this.#written - found} files were removed while they were imported`);
  }

  /** Discards the open file, if there is one. */
  async discard(): Promise<void> {
    await this.#open?.staged.discard();
    this.#open = null;
  }
}
