import type { Header } from '../../net/response-headers.ts';
import { gzipped, wantsGzip } from '../core/compression.ts';
import { isModified } from '../core/conditions.ts';
import { contentHash } from '../core/content-hash.ts';
import type { Exchange } from '../core/exchange.ts';

/** A file that the build has made. */
export interface StaticFile {
  /** The content type. */
  readonly type: string;
  /** The content, which never changes while the process runs. */
  readonly bytes: Buffer;
  /** Whether the address names the content, so that caches need not ask again. */
  readonly immutable: boolean;
}

/** The headers that let pages of every origin load a file. */
export const anyOrigin: readonly Header[] = [
  ['Access-Control-Allow-Origin', '*'],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
];

/** Hashing a large file for every request would take longer than sending it. */
const etags = new WeakMap<Buffer, string>();

/** Sends a file, compressed if the client accepts that, or 304 if the client has it. `headers` are added. */
export async function sendStaticFile(
  exchange: Exchange,
  { type, bytes, immutable }: StaticFile,
  headers: readonly Header[],
): Promise<void> {
  const etag = etagOf(bytes);
  const all: Header[] = [
    ['Content-Type', type],
    ['Cache-Control', immutable ? 'public, max-age=31536000, immutable' : 'no-cache'],
    ['ETag', etag],
    ['Vary', 'Accept-Encoding'],
    ['X-Content-Type-Options', 'nosniff'],
    ...headers,
  ];
  if (!isModified(exchange.head, etag)) return exchange.send(304, all, '');
  if (!wantsGzip(exchange.head.acceptEncoding, bytes)) return exchange.send(200, all, bytes);
  exchange.send(200, [...all, ['Content-Encoding', 'gzip']], await gzipped(bytes));
}

function etagOf(bytes: Buffer): string {
  const etag = etags.get(bytes) ?? `W/"${contentHash(bytes)}"`;
  etags.set(bytes, etag);
  return etag;
}
