import { CollabError } from '../../model/errors.ts';

/** The start of a part. */
export interface PartHead {
  /** `name` of its Content-Disposition; '' when it has none. */
  readonly name: string;
  /** `filename` of its Content-Disposition; null when it has none. */
  readonly filename: string | null;
  /** Its Content-Type; `text/plain` when it has none. */
  readonly contentType: string;
}

/** What bytes of a body turned out to be. A part is its head, any number of pieces of data, and its end. */
export type MultipartPiece =
  | { readonly type: 'part'; readonly head: PartHead }
  /** Shares memory with the bytes that were fed. */
  | { readonly type: 'data'; readonly bytes: Buffer }
  | { readonly type: 'partEnd' };

const CRLF = '\r\n';
const HEAD_END = Buffer.from('\r\n\r\n');
/** Most bytes of what stands before the first part, and of the headers of one. */
const MOST_HEAD_BYTES = 8 * 1024;
const MOST_PARTS = 100;

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

/**
 * The boundary of a body, from its Content-Type. Throws `invalid_content_type` when that is not multipart/form-data or
 * names none of 1 to 70 characters.
 */
export function boundaryOf(contentType: string): string {
  const [, quoted, bare] = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))\s*(?:;.*)?$/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) throw new CollabError('invalid_content_type', 'No file provided: send multipart/form-data, with its boundary, and one part named file');
  return boundary;
}

/**
 * Reads a multipart body (RFC 7578) as it comes, in pieces of any size, and keeps no more of it than the headers of a
 * part. What follows the last part is passed over.
 */
export class MultipartParser {
  readonly #delimiter: Buffer;
  /** `between`: right after a delimiter, where the end or another part is told. */
  #state: 'preamble' | 'between' | 'head' | 'data' | 'over' = 'preamble';
  /** What came and could not be told yet. The first delimiter needs no line break before it: it is given one. */
  #rest: Buffer = Buffer.from(CRLF);
  #parts = 0;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`${CRLF}--${boundary}`, 'latin1');
  }

  /** Whether the last part has ended. */
  get over(): boolean {
    return this.#state === 'over';
  }

  /** Feeds the next bytes and gives what they complete. Throws `invalid_request` when they are no such body. */
  *push(chunk: Buffer): Generator<MultipartPiece, void> {
    let bytes = this.#joined(chunk);
    for (;;) {
      const before = this.#state;
      switch (before) {
        case 'preamble':
          bytes = this.#passPreamble(bytes);
          break;
        case 'between':
          bytes = this.#passDelimiter(bytes);
          break;
        case 'head': {
          const end = bytes.indexOf(HEAD_END);
          if ((end < 0 ? bytes.length : end) > MOST_HEAD_BYTES) throw invalid(`The headers of a part must be at most ${MOST_HEAD_BYTES} bytes`);
          if (end < 0) break;
          yield { type: 'part', head: headOf(bytes.subarray(0, end).toString('utf8')) };
          // The line break stays: a part of no bytes is followed by its delimiter at once.
          bytes = bytes.subarray(end + CRLF.length);
          this.#state = 'data';
          this.#dataBegins = true;
          break;
        }
        case 'data':
          bytes = yield* this.#data(bytes);
          break;
        case 'over':
          bytes = bytes.subarray(bytes.length);
          break;
      }
      if (this.#state === before) break;
    }
    this.#rest = Buffer.from(bytes);
  }

  /** Whether `#rest` begins with the line break that ends the head of a part. */
  #dataBegins = false;

  /** What is to be looked at now. Most bodies begin with a boundary: their first bytes, which are many, need not be copied. */
  #joined(chunk: Buffer): Buffer {
    if (this.#rest.length === 0) return chunk;
    const bare = this.#delimiter.subarray(CRLF.length);
    if (this.#state !== 'preamble' || this.#rest.length > CRLF.length || !bare.equals(chunk.subarray(0, bare.length))) return Buffer.concat([this.#rest, chunk]);
    this.#state = 'between';
    return chunk.subarray(bare.length);
  }

  #passPreamble(bytes: Buffer): Buffer {
    const found = bytes.indexOf(this.#delimiter);
    if (found >= 0) {
      this.#state = 'between';
      return bytes.subarray(found + this.#delimiter.length);
    }
    if (bytes.length > MOST_HEAD_BYTES) throw invalid('The body does not begin with the boundary that Content-Type names');
    return bytes;
  }

  #passDelimiter(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1', 0, 64);
    if (text.startsWith('--')) {
      this.#state = 'over';
      return bytes;
    }
    const padding = /^[ \t]*/.exec(text)?.[0].length ?? 0;
    if (text.startsWith(CRLF, padding)) {
      this.#parts += 1;
      if (this.#parts > MOST_PARTS) throw invalid(`The body must have at most ${MOST_PARTS} parts`);
      this.#state = 'head';
      return bytes.subarray(padding);
    }
    const isOpen = text.length < 64 && ['', '-', '\r'].includes(text.slice(padding)) && (padding === 0 || !text.endsWith('-'));
    if (!isOpen) throw invalid('A boundary in the body is followed by neither a part nor the end');
    return bytes;
  }

  *#data(bytes: Buffer): Generator<MultipartPiece, Buffer> {
    const found = bytes.indexOf(this.#delimiter);
    const end = found < 0 ? bytes.length - partialMatch(bytes, this.#delimiter) : found;
    const begin = this.#dataBegins ? CRLF.length : 0;
    if (found < 0 && end < begin) return bytes;
    if (end > begin) yield { type: 'data', bytes: bytes.subarray(begin, end) };
    if (found < 0) {
      this.#dataBegins &&= end < begin;
      return bytes.subarray(end);
    }
    this.#dataBegins = false;
    yield { type: 'partEnd' };
    this.#state = 'between';
    return bytes.subarray(found + this.#delimiter.length);
  }
}

/** How many bytes at the end of `bytes` may be the beginning of `delimiter`. */
function partialMatch(bytes: Buffer, delimiter: Buffer): number {
  const from = Math.max(0, bytes.length - delimiter.length + 1);
  for (let start = bytes.indexOf(0x0d, from); start >= 0; start = bytes.indexOf(0x0d, start + 1)) {
    if (delimiter.subarray(0, bytes.length - start).equals(bytes.subarray(start))) return bytes.length - start;
  }
  return 0;
}

function headOf(text: string): PartHead {
  let disposition = '';
  let contentType = 'text/plain';
  for (const line of text.split(CRLF)) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    if (colon <= 0) throw invalid('A part has a line among its headers that is none');
    const value = line.slice(colon + 1).trim();
    const name = line.slice(0, colon).trim().toLowerCase();
    if (name === 'content-disposition') disposition = value;
    if (name === 'content-type') contentType = value;
    if (name === 'content-transfer-encoding' && !/^(?:binary|8bit|7bit)$/i.test(value)) throw invalid('Content-Transfer-Encoding of a part must be binary');
  }
  if (!/^form-data\s*(?:;|$)/i.test(disposition)) throw invalid('A part has no Content-Disposition: form-data');
  return { name: parameter(disposition, 'name') ?? '', filename: extended(disposition) ?? parameter(disposition, 'filename'), contentType };
}

/** A parameter of a header's value, quoted or bare; null when it is not there. */
function parameter(value: string, name: string): string | null {
  const [, quoted, bare] = new RegExp(`;\\s*${name}=(?:"((?:\\\\.|[^"\\\\])*)"|([^\\s;"]*))`, 'i').exec(value) ?? [];
  if (quoted === undefined) return bare ?? null;
  // Browsers write %22 for a quote, others a backslash before it; but Windows paths hold backslashes too.
  return quoted.replaceAll('%22', '"').replaceAll('\\"', '"').replaceAll('\\\\', '\\');
}

/** `filename*` (RFC 5987), which some clients send beside or in place of `filename`; null when it is absent or faulty. */
function extended(value: string): string | null {
  const [, encoded] = /;\s*filename\*=utf-8'[^']*'([^\s;]*)/i.exec(value) ?? [];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}
