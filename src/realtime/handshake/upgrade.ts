import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { HttpRequest, HttpResponse, us_socket_context_t } from 'uWebSockets.js';
import { requireOrigin } from '../../domain/access/access.ts';
import type { Context } from '../../domain/context.ts';
import { type CountedWindow, countRequest } from '../../domain/quotas/rate-limit.ts';
import { authenticateUser, type AuthenticatedUser } from '../../domain/access/tokens.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import { clientAddress, normaliseAddress } from '../../lib/addresses/client-address.ts';
import { Networks } from '../../lib/addresses/networks.ts';
import { originOf } from '../../lib/addresses/origin.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Logger } from '../../observability/log.ts';
import type { CorkHost } from '../socket/cork-host.ts';
import { type UpgradeRequest, readUpgradeRequest, SUBPROTOCOL } from './upgrade-request.ts';
import type { SocketData } from '../socket/socket-writer.ts';
import type { ResumePoint } from '../feed/replay.ts';
import type { Services } from '../session/services.ts';

/** What a guest brought with the request that opened its socket. */
export interface HandshakeInfo {
  /** The client's, in the form of `normaliseAddress`. */
  readonly address: string;
  readonly origin: string;
  /** The publishable key of the query; '' for none. */
  readonly key: string;
  readonly resume: ResumePoint | null;
}

/** What the handshake found, for `open` to act on. */
export type UpgradeOutcome =
  | { readonly kind: 'known'; readonly user: AuthenticatedUser; readonly resume: ResumePoint | null }
  | { readonly kind: 'guest'; readonly pass: HandshakeInfo }
  | { readonly kind: 'refused'; readonly error: CollabError }
  | { readonly kind: 'late' };

/**
 * The user whom a publishable key and a token prove, from a page of this origin ('' for none).
 * Throws `missing_credentials`, `invalid_key`, `invalid_token`, `token_expired`, `environment_disabled`, `origin_not_allowed`.
 */
export async function authenticate(ctx: Context, key: string, token: string, origin: string): Promise<AuthenticatedUser> {
  if (key === '') throw new CollabError('missing_credentials', 'The publishable key (pk_…) is missing');
  if (token === '') throw new CollabError('missing_credentials', 'The user token is missing');
  const user = await authenticateUser(ctx, key, token, 'ws');
  requireOrigin(user.actor.environment, origin);
  return user;
}

export type UpgradeHandler = (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void;

/**
 * Makes the handler of upgrade requests. Upgrades that come after an await run in the anchor. While `isClosing` everybody
 * is let in unseen, for `open` to turn away.
 */
export function upgradeHandler(services: Services, corkHost: CorkHost, isClosing: () => boolean): UpgradeHandler {
  const trusted = new Networks(services.config.trustProxy);
  return (res, req, context) => {
    const response = new UpgradeResponse(res, context);
    try {
      const request = readUpgradeRequest(req);
      response.baseUrl = baseUrlOf(services, request, () => trusted.has(normaliseAddress(peerOf(res)) ?? ''));
      if (request.ambiguous) response.drop();
      else if (isClosing()) response.accept(request, null, { kind: 'late' });
      else answer(services, corkHost, response, request, clientAddress(peerOf(res), request.forwardedFor, trusted));
    } catch (error) {
      services.log.error({ err: error }, 'WebSocket handshake failed');
      response.drop();
    }
  };
}

/** Logs that somebody was not let in; `error` whole only where it is a fault of ours. */
export function logRefusal(log: Logger, error: unknown, about: Readonly<Record<string, string>>): void {
  const { code, kind, message } = publicError(error);
  log[kind.level]({ ...about, code, err: code === 'internal' ? error : undefined }, `WebSocket refused: ${message}`);
}

function answer(services: Services, corkHost: CorkHost, response: UpgradeResponse, request: UpgradeRequest, address: string): void {
  const { ctx, config } = services;
  const window = countRequest(ctx, config, { kind: 'address', address });
  if (!window.allowed) {
    const seconds = secondsOf(window);
    services.limits.meter?.limited(window.policy);
    response.refuse(request, window, new CollabError('rate_limited', `Rate limit exceeded. Try again in ${seconds}s`, seconds));
    return;
  }
  if (request.carrier === 'message') {
    const pass = { address, origin: request.origin, key: request.key, resume: request.resume };
    response.accept(request, window, { kind: 'guest', pass });
    return;
  }
  if (request.carrier === 'query' && !config.ws.allowQueryToken) {
    const message = 'A token in the query is not accepted here (ws.allowQueryToken): send it as a subprotocol or in a connect message';
    response.refuse(request, window, new CollabError('missing_credentials', message));
    return;
  }
  authenticate(ctx, request.key, request.token, request.origin)
    .then((user) => corkHost.run(() => response.accept(request, window, { kind: 'known', user, resume: request.resume })))
    .catch((error: unknown) => {
      const shown = publicError(error);
      logRefusal(services.log, error, { address });
      return corkHost.run(() => response.refuse(request, window, shown));
    })
    .catch((error: unknown) => services.log.error({ err: error }, 'WebSocket handshake failed'));
}

/** The native response of one upgrade request: let in, or turned away, once. */
class UpgradeResponse {
  readonly #res: HttpResponse;
  readonly #context: us_socket_context_t;
  /** As `Line.baseUrl`. */
  baseUrl = '';
  #ended = false;

  constructor(res: HttpResponse, context: us_socket_context_t) {
    this.#res = res;
    this.#context = context;
    res.onAborted(() => {
      this.#ended = true;
    });
  }

  /**
   * Upgrades, in the turn of the request or in the anchor. Answers no subprotocol but ours: the core would echo the first
   * one offered, which may hold the token.
   */
  accept(request: UpgradeRequest, window: CountedWindow | null, outcome: UpgradeOutcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#res.writeStatus('101 Switching Protocols');
    for (const [name, value] of rateHeaders(window)) this.#res.writeHeader(name, value);
    const data: SocketData = { session: outcome, baseUrl: this.baseUrl };
    this.#res.upgrade(data, request.socketKey, request.offersProtocol ? SUBPROTOCOL : '', request.extensions, this.#context);
  }

  /** Who sent headers gets an HTTP answer. Everybody else may be a browser, which shows its page only close codes. */
  refuse(request: UpgradeRequest, window: CountedWindow, error: CollabError): void {
    if (request.carrier !== 'headers') {
      this.accept(request, window, { kind: 'refused', error });
      return;
    }
    if (this.#ended) return;
    this.#ended = true;
    const { status } = error.kind;
    this.#res.cork(() => {
      this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
      this.#res.writeHeader('Content-Type', 'application/json; charset=utf-8');
      this.#res.writeHeader('Cache-Control', 'no-store');
      this.#res.writeHeader('X-Content-Type-Options', 'nosniff');
      this.#res.writeHeader('X-Request-Id', request.requestId === '' ? randomUUID() : request.requestId);
      this.#res.writeHeader('X-Error-Code', error.code);
      for (const [name, value] of rateHeaders(window)) this.#res.writeHeader(name, value);
      if (error.retryAfter !== undefined) this.#res.writeHeader('Retry-After', String(error.retryAfter));
      this.#res.end(wireText(JSON.stringify({ error: error.message })));
    });
  }

  /** Ends the connection without an answer. */
  drop(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#res.close();
  }
}

/** The configured address of the server, or else the one that the client has called. */
function baseUrlOf({ config }: Services, { host, forwardedProto }: UpgradeRequest, isBehindProxy: () => boolean): string {
  return config.publicUrl === '' ? originOf(host, forwardedProto === 'https' && isBehindProxy()) : config.publicUrl;
}

function peerOf(res: HttpResponse): string {
  return Buffer.from(res.getRemoteAddressAsText()).toString();
}

function secondsOf(window: CountedWindow): number {
  return Math.max(1, Math.ceil(window.resetMs / 1000));
}

function rateHeaders(window: CountedWindow | null): [name: string, value: string][] {
  if (window === null || window.limit === 0) return [];
  return [
    ['RateLimit-Policy', `"default";q=${window.limit};w=60`],
    ['RateLimit', `"default";r=${window.remaining};t=${secondsOf(window)}`],
  ];
}
