import type { Config } from '../../config/schema.ts';
import type { Context, UserActor } from '../../domain/context.ts';
import { awaitThumbnail, openFile, type ServedFile } from '../../domain/files/files.ts';
import { filesIn } from '../../domain/files/file-jobs.ts';
import { countRequest } from '../../domain/quotas/rate-limit.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { BlobReader } from '../../ports/blobs.ts';
import { type ByteRange, rangeOf } from '../core/byte-range.ts';
import { isModified } from '../core/conditions.ts';
import { corsHeaders, preflightHeaders } from '../core/cors.ts';
import { jsonHead } from '../core/content-headers.ts';
import type { BodySource, Exchange } from '../core/exchange.ts';
import { enforceRateLimit } from '../core/rate-limit.ts';
import { type Header, refusalBody, refusalHeaders } from '../../net/response-headers.ts';
import type { TrustedProxies } from '../../net/trusted-proxies.ts';
import { authenticateUserOf } from '../api/authentication.ts';
import { answerFailure } from '../core/refusal.ts';
import type { RequestMeter } from '../core/request-meter.ts';
import { Router } from '../core/router.ts';
import { SmallFiles } from './small-files.ts';

export interface FilesDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly proxies: TrustedProxies;
  /** Null while nobody asks for measurements. */
  readonly meter: RequestMeter | null;
}

/** Where files are served, outside of the API. */
export const FILES_PREFIX = '/files/';
const PATTERN = '/files/:environmentId/:fileId';

/** What every file is sent with, in one line (see answer.ts). Nobody's browser shall take one for a page. */
const FILE_HEAD: Header = [
  'Cache-Control',
  [
    'public, max-age=31536000, immutable',
    'Vary: X-Service-Key, X-Service-Token, Origin',
    'X-Content-Type-Options: nosniff',
    "Content-Security-Policy: default-src 'none'; sandbox",
    'Cross-Origin-Resource-Policy: cross-origin',
    'Accept-Ranges: bytes',
    'Referrer-Policy: no-referrer',
  ].join('\r\n'),
];

/** Serves uploads and thumbnails to the users of their environment (docs/api.md, "Files"). */
export class Files {
  readonly #deps: FilesDeps;
  readonly #router = new Router<null>();
  readonly #small = new SmallFiles();

  constructor(deps: FilesDeps) {
    this.#deps = deps;
    this.#router.add('GET', PATTERN, null);
  }

  /** Answers a request whose path begins with `FILES_PREFIX`. */
  async serve(exchange: Exchange): Promise<void> {
    const { ctx, log } = this.#deps;
    const { head } = exchange;
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    let readers = corsHeaders(null, '');
    exchange.route = PATTERN;
    try {
      if (head.method === 'OPTIONS') return exchange.send(204, [...preflightHeaders(['GET']), ...headers], '');
      this.#limit(exchange, headers);
      const match = this.#router.find(head.method, head.path);
      if (match === null) throw new CollabError('route_not_found', 'There is nothing at this path, or not with this method');
      const actor = await authenticateUserOf(ctx, head, log);
      // What depends on the origin is said in FILE_HEAD.
      readers = corsHeaders(actor.environment, head.origin).filter(([name]) => name !== 'Vary');
      await this.#answer(exchange, actor, match.params, [...headers, ...readers]);
    } catch (thrown) {
      answerFailure(log, exchange, thrown, [...headers, ...readers]);
    }
  }

  async #answer(exchange: Exchange, actor: UserActor, params: Readonly<Record<string, string>>, headers: readonly Header[]): Promise<void> {
    const { head } = exchange;
    const { environmentId = '', fileId = '' } = params;
    const thumbnail = new URLSearchParams(head.query).get('thumb') === '1';
    const file = await openFile(this.#deps.ctx, actor, { environmentId, fileId, thumbnail });
    const tag = `"${file.tag}"`;
    const all: Header[] = [FILE_HEAD, ...headers, ['ETag', tag]];
    if (!isModified(head, tag)) return exchange.send(304, all, '');
    all.push(['Content-Type', file.mimeType], ['Content-Disposition', `inline; filename*=UTF-8''${encodeExtended(file.filename)}`]);
    const small = this.#small.get(keyOf(file));
    if (small === undefined) await this.#sendBlob(exchange, file, tag, all);
    else await sendBytes(exchange, { size: small.length, read: (start, length) => Promise.resolve(small.subarray(start, start + length)) }, small, tag, all);
  }

  async #sendBlob(exchange: Exchange, file: ServedFile, tag: string, headers: readonly Header[]): Promise<void> {
    const { ctx } = this.#deps;
    if (file.isThumbnail) await awaitThumbnail(ctx, file, () => !exchange.over);
    const { blobs } = filesIn(ctx);
    const { environmentId, blob } = file;
    const stat = await blobs.stat(environmentId, blob);
    if (stat === undefined) throw new CollabError('file_not_found', 'File not found');
    const reader = await blobs.open(environmentId, blob);
    try {
      const bytes = this.#small.fits(stat.size) ? await reader.read(0, stat.size) : null;
      if (bytes !== null) this.#small.keep(keyOf(file), bytes);
      await sendBytes(exchange, sourceOf(reader, stat.size), bytes, tag, headers);
    } finally {
      await reader.close();
    }
  }

  #limit(exchange: Exchange, headers: Header[]): void {
    const { ctx, config, proxies, meter } = this.#deps;
    enforceRateLimit(countRequest(ctx, config, { kind: 'files', address: proxies.clientAddress(exchange) }), headers, meter);
  }
}

const keyOf = ({ environmentId, blob }: ServedFile): string => `${environmentId} ${blob}`;

function sourceOf(reader: BlobReader, size: number): BodySource {
  return { size, read: (offset, length) => reader.read(offset, length) };
}

/** Sends all of a file or the range that is asked for. `whole`: its bytes, where they are at hand. */
async function sendBytes(exchange: Exchange, source: BodySource, whole: Buffer | null, tag: string, headers: readonly Header[]): Promise<void> {
  const range = wantedRange(exchange, source.size, tag);
  if (range === 'unsatisfiable') return refuseRange(exchange, source.size, headers);
  if (range === null) return whole === null ? exchange.sendSource(200, headers, source) : exchange.send(200, headers, whole);
  const { start, end } = range;
  const partial: Header[] = [...headers, ['Content-Range', `bytes ${start}-${end - 1}/${source.size}`]];
  if (whole !== null) return exchange.send(206, partial, whole.subarray(start, end));
  await exchange.sendSource(206, partial, { size: end - start, read: (offset, length) => source.read(start + offset, length) });
}

function wantedRange({ head }: Exchange, size: number, tag: string): ByteRange | null | 'unsatisfiable' {
  if (head.range === '' || head.method === 'HEAD') return null;
  // A date never fits: files have no Last-Modified.
  if (head.ifRange !== '' && head.ifRange !== tag) return null;
  return rangeOf(head.range, size);
}

function refuseRange(exchange: Exchange, size: number, headers: readonly Header[]): void {
  const kept = headers.filter(([name]) => !['Cache-Control', 'ETag', 'Content-Type', 'Content-Disposition'].includes(name));
  const refusal = new CollabError('range_not_satisfiable', `Range must begin before the end of the file, which has ${size} bytes`);
  exchange.send(416, [jsonHead, ...kept, ['Content-Range', `bytes */${size}`], ...refusalHeaders(refusal)], refusalBody(refusal));
}

/** Text as RFC 8187 has it in a parameter. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text).replaceAll(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}
