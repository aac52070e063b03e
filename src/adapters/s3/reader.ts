import type { BlobReader } from '../../ports/blobs.ts';
import type { S3Client } from './client/client.ts';
import { type ObjectRange, readRange } from './objects.ts';
import { asBlobError } from './refusals.ts';

/** What is read when a blob is opened: all of a small one, such as a thumbnail. */
export const HEAD_BYTES = 64 * 1024;
/** The most that is read ahead of one reader. */
const MAX_WINDOW = 1024 * 1024;

/** Bounds the bytes that all readers of a process keep to read ahead. */
export class ReadAhead {
  #free: number;

  constructor(bytes = 32 * 1024 * 1024) {
    this.#free = bytes;
  }

  /** Takes `bytes`; false if there are not so many. */
  take(bytes: number): boolean {
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#free += bytes;
  }
}

interface Window {
  readonly start: number;
  readonly bytes: Buffer;
  /** Of `ReadAhead`. */
  readonly taken: number;
}

/**
 * An open object. It is read in ranges that grow while reads follow each other, each one request whose whole answer is
 * in memory: a slow client holds no connection. The first 64 KiB are read when it is opened, so a blob of that size
 * stays readable when it is removed; reads beyond reject then, and never return bytes of another object.
 */
export class S3Reader implements BlobReader {
  readonly #client: S3Client;
  readonly #key: string;
  readonly #head: ObjectRange;
  readonly #ahead: ReadAhead;
  #window: Window | null = null;
  #windowBytes = HEAD_BYTES;
  /** Where the next read begins if it follows the last one. */
  #next = 0;
  #isClosed = false;

  private constructor(client: S3Client, key: string, head: ObjectRange, ahead: ReadAhead) {
    this.#client = client;
    this.#key = key;
    this.#head = head;
    this.#ahead = ahead;
  }

  /** Rejects if there is no such object. */
  static async open(client: S3Client, key: string, ahead: ReadAhead): Promise<S3Reader> {
    const head = await readRange(client, key, 0, HEAD_BYTES);
    if (head === undefined) throw Object.assign(new Error(`there is no blob ${key}`), { code: 'ENOENT' });
    return new S3Reader(client, key, head, ahead);
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const end = Math.min(offset + length, this.#head.size);
    if (offset >= end) return Buffer.alloc(0);
    const isNext = offset === this.#next;
    this.#next = end;
    const pieces: Buffer[] = [];
    for (let at = offset; at < end;) {
      const piece = this.#kept(at, end) ?? (await this.#fetch(at, end, isNext));
      pieces.push(piece);
      at += piece.length;
    }
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#keep(null);
  }

  /** What is in memory from `start` to `end`; null if nothing is. */
  #kept(start: number, end: number): Buffer | null {
    for (const kept of [{ start: 0, bytes: this.#head.bytes }, this.#window]) {
      if (kept === null || start < kept.start || start >= kept.start + kept.bytes.length) continue;
      return kept.bytes.subarray(start - kept.start, end - kept.start);
    }
    return null;
  }

  async #fetch(start: number, end: number, isNext: boolean): Promise<Buffer> {
    if (this.#isClosed) throw new Error('the blob is closed');
    const wanted = Math.min(end - start, MAX_WINDOW);
    this.#windowBytes = isNext ? Math.min(this.#windowBytes * 2, MAX_WINDOW) : HEAD_BYTES;
    const ahead = Math.min(this.#windowBytes, this.#head.size - start);
    const taken = ahead > wanted && this.#ahead.take(ahead) ? ahead : 0;
    try {
      const bytes = await this.#readRange(start, Math.max(wanted, taken));
      if (taken > 0) this.#keep({ start, bytes, taken });
      return bytes.subarray(0, wanted);
    } catch (error) {
      this.#ahead.give(taken);
      throw error;
    }
  }

  async #readRange(start: number, length: number): Promise<Buffer> {
    const found = await asBlobError(readRange(this.#client, this.#key, start, length));
    if (found === undefined) throw new Error(`the blob ${this.#key} was removed while it was read`);
    if (found.tag !== this.#head.tag || found.size !== this.#head.size)
      throw new Error(`the blob ${this.#key} was replaced while it was read`);
    return found.bytes;
  }

  /** Keeps a window instead of the last one; none after `close`. */
  #keep(window: Window | null): void {
    this.#ahead.give(this.#window?.taken ?? 0);
    this.#window = this.#isClosed ? null : window;
    if (window !== null && this.#isClosed) this.#ahead.give(window.taken);
  }
}
