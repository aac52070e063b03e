import type { HashedBody, S3Client } from './client/client.ts';
import { abortUpload, beginUpload, completeUpload, type UploadedPart, uploadPart, type UploadId } from './multipart.ts';

/** Uploads the parts of one blob, one after the other, in their order. */
export class PartsUpload {
  readonly #client: S3Client;
  readonly #key: string;
  readonly #cancelled = new AbortController();
  readonly #parts: UploadedPart[] = [];
  #upload: UploadId | null = null;
  /** Until the parts that were added are uploaded; null if none was. */
  #work: Promise<void> | null = null;

  constructor(client: S3Client, key: string) {
    this.#client = client;
    this.#key = key;
  }

  get isEmpty(): boolean {
    return this.#work === null;
  }

  /** Adds a part, which is uploaded after those before it. What fails is reported by `settled` and `complete`. */
  add(part: HashedBody): void {
    this.#work = (this.#work ?? Promise.resolve()).then(() => this.#uploadNext(part));
    // It is reported to the caller that awaits it later.
    this.#work.catch(() => undefined);
  }

  /** Resolves once all parts that were added are uploaded. Rejects with the first failure. */
  async settled(): Promise<void> {
    await this.#work;
  }

  /** Makes the parts an object of `size` bytes, once they are uploaded. */
  async complete(size: number): Promise<void> {
    await this.#work;
    if (this.#upload === null) throw new Error('no part was added');
    await completeUpload(this.#client, this.#upload, this.#parts, size);
  }

  /**
   * Cancels what is uploaded and removes the parts that the store has. A store that does not answer keeps them until they
   * are swept.
   */
  async abort(): Promise<void> {
    this.#cancelled.abort(new Error('the upload was discarded'));
    // A part that arrives after the end of its upload would stay.
    await this.#work?.catch(() => undefined);
    if (this.#upload !== null) await abortUpload(this.#client, this.#upload).catch(() => undefined);
  }

  async #uploadNext(part: HashedBody): Promise<void> {
    this.#cancelled.signal.throwIfAborted();
    this.#upload ??= await beginUpload(this.#client, this.#key);
    const number = this.#parts.length + 1;
    this.#parts.push(await uploadPart(this.#client, this.#upload, number, part, this.#cancelled.signal));
  }
}
