import type { Config } from '../../config/schema.ts';
import type { UserActor } from '../../domain/access/actor.ts';
import { type Context, requireFileStorage } from '../../domain/context.ts';
import { awaitThumbnail, openFile, type ServedFile } from '../../domain/files/files.ts';
import { countRequest } from '../../domain/quotas/count-request.ts';
import { CollabError } from '../../model/errors.ts';
import type { Header } from '../../net/response-headers.ts';
import type { TrustedProxies } from '../../net/trusted-proxies.ts';
import type { Logger } from '../../observability/log.ts';
import { authenticateUserOf, lookUpKey } from '../api/authentication.ts';
import { isModified } from '../core/conditions.ts';
import { corsHeaders, preflightHeaders } from '../core/cors.ts';
import type { Exchange } from '../core/exchange.ts';
import { enforceRateLimit } from '../core/enforce-rate-limit.ts';
import { sendError, routeNotFound } from '../core/send-error.ts';
import type { RequestMeter } from '../core/request-meter.ts';
import { Router } from '../core/router.ts';
import { sendFile } from './send-file.ts';
import { SmallFiles } from './small-files.ts';

/** Dependencies of the file server. */
export interface FilesDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly proxies: TrustedProxies;
  /** Null while nothing is measured. */
  readonly meter: RequestMeter | null;
}

/** The prefix of the paths of files, which are outside of the API. */
export const FILES_PREFIX = '/files/';
const PATTERN = '/files/:environmentId/:fileId';

/** The request headers with the credentials of a browser. */
const USER_HEADERS = 'X-Service-Key, X-Service-Token';

/** The headers of files for browsers. */
const USER_FILE_HEAD = fileHead(USER_HEADERS);
/**
 * The headers of files for secret keys: without `Authorization` in `Vary`, a shared cache would serve them to everyone
 * (RFC 9111, section 3.5).
 */
const KEY_FILE_HEAD = fileHead(`${USER_HEADERS}, Authorization`);

/** Serves uploads and thumbnails to the users of their environment (docs/api.md, "Files"). */
export class Files {
  readonly #deps: FilesDeps;
  readonly #router = new Router<null>();
  readonly #small = new SmallFiles();

  constructor(deps: FilesDeps) {
    this.#deps = deps;
    this.#router.add('GET', PATTERN, null);
  }

  /** Answers a request whose path begins with `FILES_PREFIX`. Never rejects. */
  async serve(exchange: Exchange): Promise<void> {
    const { ctx, log } = this.#deps;
    const { head } = exchange;
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    let cors = corsHeaders(null, '');
    exchange.route = PATTERN;
    try {
      if (head.method === 'OPTIONS') return exchange.send(204, [...preflightHeaders(['GET']), ...headers], '');
      await this.#countAgainstLimit(exchange, headers);
      const match = this.#router.find(head.method, head.path);
      if (match === null) throw routeNotFound(head);
      const actor = await authenticateUserOf(
        ctx,
        head,
        log,
        head.authorization === '' ? null : { key: await lookUpKey(ctx, head.authorization), access: 'read' },
      );
      // The headers of files have a Vary of their own, which includes Origin.
      cors = corsHeaders(actor.environment, head.origin).filter(([name]) => name !== 'Vary');
      await this.#respond(exchange, actor, match.params, [...headers, ...cors]);
    } catch (thrown) {
      sendError(log, exchange, thrown, [...headers, ...cors]);
    }
  }

  async #countAgainstLimit(exchange: Exchange, headers: Header[]): Promise<void> {
    const { ctx, config, proxies, meter } = this.#deps;
    const window = await countRequest(ctx, config, { kind: 'files', address: proxies.clientAddress(exchange) });
    enforceRateLimit(window, headers, meter);
  }

  async #respond(
    exchange: Exchange,
    actor: UserActor,
    params: Readonly<Record<string, string>>,
    headers: readonly Header[],
  ): Promise<void> {
    const { head } = exchange;
    const { environmentId = '', fileId = '' } = params;
    const thumbnail = new URLSearchParams(head.query).get('thumb') === '1';
    const file = await openFile(this.#deps.ctx, actor, { environmentId, fileId, thumbnail });
    const etag = `"${file.tag}"`;
    const all: Header[] = [head.authorization === '' ? USER_FILE_HEAD : KEY_FILE_HEAD, ...headers, ['ETag', etag]];
    if (!isModified(head, etag)) return exchange.send(304, all, '');
    all.push(
      ['Content-Type', file.mimeType],
      ['Content-Disposition', `inline; filename*=UTF-8''${encodeExtended(file.filename)}`],
    );
    const bytes = this.#small.get(cacheKey(file));
    if (bytes === undefined) return this.#sendBlob(exchange, file, etag, all);
    const source = {
      size: bytes.length,
      read: (start: number, length: number) => Promise.resolve(bytes.subarray(start, start + length)),
    };
    await sendFile(exchange, { source, bytes, etag }, all);
  }

  async #sendBlob(exchange: Exchange, file: ServedFile, etag: string, headers: readonly Header[]): Promise<void> {
    const { ctx } = this.#deps;
    if (file.isThumbnail) await awaitThumbnail(ctx, file, () => !exchange.isFinished);
    const { blobs } = requireFileStorage(ctx);
    const { environmentId, blob } = file;
    const stat = await blobs.stat(environmentId, blob);
    if (stat === undefined) throw new CollabError('file_not_found', 'File not found');
    const reader = await blobs.open(environmentId, blob);
    try {
      const bytes = this.#small.fits(stat.size) ? await reader.read(0, stat.size) : null;
      if (bytes !== null) this.#small.set(cacheKey(file), bytes);
      const source = { size: stat.size, read: (offset: number, length: number) => reader.read(offset, length) };
      await sendFile(exchange, { source, bytes, etag }, headers);
    } finally {
      await reader.close();
    }
  }
}

/**
 * The headers of every file, in one value (see net/response-headers.ts). They keep browsers from treating a file as a
 * page.
 *
 * @param credentials the request headers that a cache must include in its key
 */
function fileHead(credentials: string): Header {
  const value = [
    'public, max-age=31536000, immutable',
    `Vary: ${credentials}, Origin`,
    'X-Content-Type-Options: nosniff',
    "Content-Security-Policy: default-src 'none'; sandbox",
    'Cross-Origin-Resource-Policy: cross-origin',
    'Accept-Ranges: bytes',
    'Referrer-Policy: no-referrer',
  ].join('\r\n');
  return ['Cache-Control', value];
}

const cacheKey = ({ environmentId, blob }: ServedFile): string => `${environmentId} ${blob}`;

/**
 * Encodes text as the value of an extended parameter (RFC 8187). A lone surrogate becomes U+FFFD; earlier versions have
 * imported such names.
 */
function encodeExtended(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll(
    /['()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
