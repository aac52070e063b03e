import { CollabError } from '../../model/errors.ts';
import { type Header, refusalBody, refusalHeaders } from '../../net/response-headers.ts';
import type { BodySource } from '../core/body-source.ts';
import { type ByteRange, rangeOf } from '../core/byte-range.ts';
import { jsonHead } from '../core/content-headers.ts';
import type { Exchange } from '../core/exchange.ts';

/** Headers that describe a file and do not belong to a refusal. */
const FILE_HEADERS = new Set(['Cache-Control', 'ETag', 'Content-Type', 'Content-Disposition']);

/** The content of a file that is sent. */
export interface FileContent {
  readonly source: BodySource;
  /** All bytes of the file, if they are in memory; otherwise null, and they are read from `source`. */
  readonly bytes: Buffer | null;
  /** The ETag of the file, quoted. */
  readonly etag: string;
}

/** Sends a file, or the range of it that the request asks for. Rejects if the source fails. */
export async function sendFile(
  exchange: Exchange,
  { source, bytes, etag }: FileContent,
  headers: readonly Header[],
): Promise<void> {
  const range = requestedRange(exchange, source.size, etag);
  if (range === 'unsatisfiable') return refuseRange(exchange, source.size, headers);
  if (range === null)
    return bytes === null ? exchange.sendSource(200, headers, source) : exchange.send(200, headers, bytes);
  const { start, end } = range;
  const partial: Header[] = [...headers, ['Content-Range', `bytes ${start}-${end - 1}/${source.size}`]];
  if (bytes !== null) return exchange.send(206, partial, bytes.subarray(start, end));
  await exchange.sendSource(206, partial, {
    size: end - start,
    read: (offset, length) => source.read(start + offset, length),
  });
}

function requestedRange({ head }: Exchange, size: number, etag: string): ByteRange | null | 'unsatisfiable' {
  if (head.range === '' || head.method === 'HEAD') return null;
  // A date in If-Range never matches: files have no Last-Modified.
  if (head.ifRange !== '' && head.ifRange !== etag) return null;
  return rangeOf(head.range, size);
}

function refuseRange(exchange: Exchange, size: number, headers: readonly Header[]): void {
  const kept = headers.filter(([name]) => !FILE_HEADERS.has(name));
  const refusal = new CollabError(
    'range_not_satisfiable',
    `Range must begin before the end of the file, which has ${size} bytes`,
  );
  exchange.send(
    416,
    [jsonHead, ...kept, ['Content-Range', `bytes */${size}`], ...refusalHeaders(refusal)],
    refusalBody(refusal),
  );
}
