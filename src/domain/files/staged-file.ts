import { createHash } from 'node:crypto';
import { contradicts } from '../../model/attachment.ts';
import type { StagedBlob } from '../../ports/blobs.ts';
import { HEAD_BYTES, type Media, type MediaFile } from '../../ports/media.ts';

/** Where the MIME type of a file comes from. */
export type TypeSource = 'as declared' | 'as its name or first bytes suggest';

/** A file that is being received. It collects what the checks of its content need. */
export class StagedFile {
  readonly #blob: StagedBlob;
  readonly #hash = createHash('sha256');
  #size = 0;
  /** The first byte that is not white space; null before there is one. */
  #firstByte: number | null = null;
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);

  constructor(blob: StagedBlob) {
    this.#blob = blob;
  }

  /** The bytes written so far. */
  get size(): number {
    return this.#size;
  }

  /** Writes the next bytes. Await it before the next call. Throws `storage_full` and `storage_failed`. */
  async write(chunk: Buffer): Promise<void> {
    this.#size += chunk.byteLength;
    this.#firstByte ??= chunk.find((byte) => !isBlank(byte)) ?? null;
    this.#hash.update(chunk);
    if (this.#head.length < HEAD_BYTES)
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, HEAD_BYTES - this.#head.length)]);
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-2)]).subarray(-2);
    await this.#blob.write(chunk);
  }

  /** The SHA-256 of the content, hex. Ends the hash: call it once, after the last `write`. */
  sha256(): string {
    return this.#hash.digest('hex');
  }

  /** The file for `Media`. `userKey` as in `MediaFile`. */
  mediaFile(userKey: string): MediaFile {
    return {
      size: this.#size,
      read: (offset, length) => this.#blob.read(offset, length),
      head: this.#head,
      tail: this.#tail,
      userKey,
    };
  }

  /** How the content contradicts the MIME type, as a sentence without a full stop; null if it does not. */
  async contradictionOf(mimeType: string, source: TypeSource, media: Media, userKey: string): Promise<string | null> {
    if (this.#firstByte === 0x3c) return `The content is not ${mimeType}: it begins like HTML or XML`;
    const detected = await media.sniff(this.mediaFile(userKey));
    return detected !== undefined && contradicts(detected, mimeType)
      ? `The content is ${detected}, not ${mimeType} ${source}`
      : null;
  }

  /** As `StagedBlob.flush`. */
  flush(): Promise<void> {
    return this.#blob.flush();
  }

  /** As `StagedBlob.commit`. */
  commit(): Promise<void> {
    return this.#blob.commit();
  }

  /** As `StagedBlob.discard`. */
  discard(): Promise<void> {
    return this.#blob.discard();
  }
}

/** Whether a byte is white space, or part of the byte order mark of UTF-8. */
function isBlank(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0xef || byte === 0xbb || byte === 0xbf;
}
