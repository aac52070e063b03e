import { CollabError } from '../../model/errors.ts';
import { type PartHead, parsePartHead } from './part-headers.ts';

/** A token that the parser found. A part is its head, any number of data chunks, and its end. */
export type MultipartToken =
  | { readonly type: 'part'; readonly head: PartHead }
  /** `bytes` shares memory with the bytes that were pushed. */
  | { readonly type: 'data'; readonly bytes: Buffer }
  | { readonly type: 'partEnd' };

const CRLF = '\r\n';
const HEAD_END = Buffer.from('\r\n\r\n');
/** The largest preamble, and the largest head of a part, in bytes. */
const MAX_HEAD_BYTES = 8 * 1024;
const MAX_PARTS = 100;

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

/**
 * Parses a multipart body (RFC 7578) as it arrives, in chunks of any size. It buffers at most the headers of a part.
 * What follows the last part is skipped.
 */
export class MultipartParser {
  readonly #delimiter: Buffer;
  /** `delimiter`: right after a delimiter, before the bytes that say whether a part or the end follows. */
  #state: 'preamble' | 'delimiter' | 'head' | 'data' | 'complete' = 'preamble';
  /**
   * Bytes that cannot be interpreted before more arrive. The line break that the first delimiter lacks is added here.
   */
  #rest: Buffer = Buffer.from(CRLF);
  /** Whether `#rest` begins with the line break that ends the head of a part. */
  #startsWithHeadEnd = false;
  #parts = 0;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`${CRLF}--${boundary}`, 'latin1');
  }

  /** Whether the last part has ended. */
  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  /**
   * Parses the next bytes and yields the tokens that they complete. Throws `invalid_request` if the body is malformed.
   */
  *push(chunk: Buffer): Generator<MultipartToken, void> {
    let bytes = this.#withRest(chunk);
    for (;;) {
      const before = this.#state;
      switch (before) {
        case 'preamble':
          bytes = this.#skipPreamble(bytes);
          break;
        case 'delimiter':
          bytes = this.#readDelimiterEnd(bytes);
          break;
        case 'head':
          bytes = yield* this.#readHead(bytes);
          break;
        case 'data':
          bytes = yield* this.#readData(bytes);
          break;
        case 'complete':
          bytes = bytes.subarray(bytes.length);
          break;
      }
      if (this.#state === before) break;
    }
    this.#rest = Buffer.from(bytes);
  }

  /**
   * The bytes to parse now. Most bodies begin with their boundary, and then the first chunk, which is large, is not
   * copied.
   */
  #withRest(chunk: Buffer): Buffer {
    if (this.#rest.length === 0) return chunk;
    const bare = this.#delimiter.subarray(CRLF.length);
    if (this.#state !== 'preamble' || this.#rest.length > CRLF.length || !bare.equals(chunk.subarray(0, bare.length)))
      return Buffer.concat([this.#rest, chunk]);
    this.#state = 'delimiter';
    return chunk.subarray(bare.length);
  }

  #skipPreamble(bytes: Buffer): Buffer {
    const found = bytes.indexOf(this.#delimiter);
    if (found >= 0) {
      this.#state = 'delimiter';
      return bytes.subarray(found + this.#delimiter.length);
    }
    if (bytes.length > MAX_HEAD_BYTES)
      throw invalid('The body does not begin with the boundary that Content-Type names');
    return bytes;
  }

  #readDelimiterEnd(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1', 0, 64);
    if (text.startsWith('--')) {
      this.#state = 'complete';
      return bytes;
    }
    const padding = /^[ \t]*/.exec(text)?.[0].length ?? 0;
    if (text.startsWith(CRLF, padding)) {
      this.#parts += 1;
      if (this.#parts > MAX_PARTS) throw invalid(`The body must have at most ${MAX_PARTS} parts`);
      this.#state = 'head';
      return bytes.subarray(padding);
    }
    const isIncomplete =
      text.length < 64 && ['', '-', '\r'].includes(text.slice(padding)) && (padding === 0 || !text.endsWith('-'));
    if (!isIncomplete) throw invalid('A boundary in the body is followed by neither a part nor the end');
    return bytes;
  }

  *#readHead(bytes: Buffer): Generator<MultipartToken, Buffer> {
    const end = bytes.indexOf(HEAD_END);
    if ((end < 0 ? bytes.length : end) > MAX_HEAD_BYTES)
      throw invalid(`The headers of a part must be at most ${MAX_HEAD_BYTES} bytes`);
    if (end < 0) return bytes;
    yield { type: 'part', head: parsePartHead(bytes.subarray(0, end).toString('utf8')) };
    this.#state = 'data';
    // The line break is kept, because the delimiter after an empty part begins with it.
    this.#startsWithHeadEnd = true;
    return bytes.subarray(end + CRLF.length);
  }

  *#readData(bytes: Buffer): Generator<MultipartToken, Buffer> {
    const found = bytes.indexOf(this.#delimiter);
    const end = found < 0 ? bytes.length - partialMatch(bytes, this.#delimiter) : found;
    const begin = this.#startsWithHeadEnd ? CRLF.length : 0;
    if (found < 0 && end < begin) return bytes;
    if (end > begin) yield { type: 'data', bytes: bytes.subarray(begin, end) };
    if (found < 0) {
      this.#startsWithHeadEnd &&= end < begin;
      return bytes.subarray(end);
    }
    this.#startsWithHeadEnd = false;
    yield { type: 'partEnd' };
    this.#state = 'delimiter';
    return bytes.subarray(found + this.#delimiter.length);
  }
}

/** The number of bytes at the end of `bytes` that may be the beginning of `delimiter`. */
function partialMatch(bytes: Buffer, delimiter: Buffer): number {
  const from = Math.max(0, bytes.length - delimiter.length + 1);
  for (let start = bytes.indexOf(0x0d, from); start >= 0; start = bytes.indexOf(0x0d, start + 1)) {
    if (delimiter.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return bytes.length - start;
  }
  return 0;
}
