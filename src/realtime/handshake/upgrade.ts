import { requireOrigin } from '../../domain/access/access.ts';
import type { Context } from '../../domain/context.ts';
import { requirePassing } from '../../domain/filtering.ts';
import { type CountedWindow, countRequest } from '../../domain/quotas/count-request.ts';
import { authenticateUser, type AuthenticatedUser } from '../../domain/access/tokens.ts';
import { CollabError, publicError } from '../../model/errors.ts';
import type { CoreApp, CoreRequest, CoreResponse, UpgradeContext } from '../../net/core.ts';
import { rateHeaders, rateLimited } from '../../net/rate-status.ts';
import { newRequestId } from '../../net/request-id.ts';
import { refusalBody, refusalHeaders, statusLine, uncachedJson } from '../../net/response-headers.ts';
import { remoteAddress, TrustedProxies } from '../../net/trusted-proxies.ts';
import { wireText } from '../../net/wire-text.ts';
import type { Logger } from '../../observability/log.ts';
import { type UpgradeRequest, readUpgradeRequest, SUBPROTOCOL } from './upgrade-request.ts';
import type { SocketData } from '../socket/socket-writer.ts';
import type { Services } from '../services.ts';
import type { UpgradeOutcome } from './upgrade-outcome.ts';

/**
 * Authenticates a user by publishable key and token, from a page of this origin ('' for none). Throws
 * `missing_credentials`, `invalid_key`, `invalid_token`, `token_expired`, `environment_disabled`, `origin_not_allowed`,
 * `content_rejected`.
 */
export async function authenticate(
  ctx: Context,
  key: string,
  token: string,
  origin: string,
): Promise<AuthenticatedUser> {
  if (key === '') throw new CollabError('missing_credentials', 'The publishable key (pk_…) is missing');
  if (token === '') throw new CollabError('missing_credentials', 'The user token is missing');
  const user = await authenticateUser(ctx, key, token, 'ws');
  requireOrigin(user.actor.environment, origin);
  await requirePassing(ctx, user.actor, 'connection.open', {
    userId: user.claims.userId,
    rooms: user.claims.rooms,
    origin,
  });
  return user;
}

/** The native handler of upgrade requests. */
export type UpgradeHandler = (res: CoreResponse, req: CoreRequest, context: UpgradeContext) => void;

/**
 * Creates the handler of upgrade requests. While `isClosing` returns
 * true, every request is upgraded without checks, and `open` closes the socket.
 */
export function upgradeHandler(services: Services, app: CoreApp, isClosing: () => boolean): UpgradeHandler {
  const proxies = new TrustedProxies(services.config);
  return (res, req, context) => {
    const response = new UpgradeResponse(res, context);
    const fail = (error: unknown): void => {
      services.log.error({ err: error }, 'WebSocket handshake failed');
      response.drop();
    };
    try {
      const request = readUpgradeRequest(req);
      const forwarded = { peer: remoteAddress(res), head: request };
      response.baseUrl = proxies.baseUrl(forwarded);
      response.address = proxies.clientAddress(forwarded);
      if (request.ambiguous) response.drop();
      else if (isClosing()) response.accept(request, null, { kind: 'closing' });
      else respond(services, app, response, request).catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

/** Logs a refused socket. The whole `error` is logged only if it is internal. */
export function logRefusal(log: Logger, error: unknown, fields: Readonly<Record<string, string>>): void {
  const { code, kind, message } = publicError(error);
  log[kind.level]({ ...fields, code, err: code === 'internal' ? error : undefined }, `WebSocket refused: ${message}`);
}

async function respond(
  services: Services,
  app: CoreApp,
  response: UpgradeResponse,
  request: UpgradeRequest,
): Promise<void> {
  const { ctx, config } = services;
  const { address } = response;
  const window = await countRequest(ctx, config, { kind: 'address', address });
  if (!window.allowed) {
    services.limits.meter?.limited(window.policy);
    return refuseLater(services, app, response, request, window, rateLimited(window));
  }
  if (request.source === 'message') {
    if (!(await services.refusedSockets.admits(address))) {
      const error = new CollabError(
        'rate_limited',
        'Too many sockets of this address were refused and may still be open',
        Math.ceil(app.lingerMs / 1000),
      );
      return app.upgradeLater(() => response.refuse(request, window, error));
    }
    const info = { address, origin: request.origin, key: request.key, resume: request.resume };
    return app.upgradeLater(() => response.accept(request, window, { kind: 'pending', info }));
  }
  try {
    const user = await authenticateRequest(services, request);
    await app.upgradeLater(() =>
      response.accept(request, window, { kind: 'authenticated', user, resume: request.resume }),
    );
  } catch (error) {
    logRefusal(services.log, error, { address });
    await refuseLater(services, app, response, request, window, publicError(error));
  }
}

/**
 * Refuses with a close code, or without a socket once the address has so many that were refused and may still be open.
 */
async function refuseLater(
  services: Services,
  app: CoreApp,
  response: UpgradeResponse,
  request: UpgradeRequest,
  window: CountedWindow,
  error: CollabError,
): Promise<void> {
  const opens = request.source !== 'headers' && (await services.refusedSockets.admits(response.address));
  await app.upgradeLater(() =>
    opens ? response.accept(request, window, { kind: 'refused', error }) : response.refuse(request, window, error),
  );
}

async function authenticateRequest(
  { ctx, config }: Services,
  { source, key, token, origin }: UpgradeRequest,
): Promise<AuthenticatedUser> {
  if (source !== 'query' || config.ws.allowQueryToken) return authenticate(ctx, key, token, origin);
  throw new CollabError(
    'missing_credentials',
    'A token in the query is not accepted here (ws.allowQueryToken): send it as a subprotocol or in a connect message',
  );
}

/** The native response to one upgrade request, which is accepted, refused or dropped once. */
class UpgradeResponse {
  readonly #res: CoreResponse;
  readonly #context: UpgradeContext;
  /** See `SocketWriter.baseUrl`. */
  baseUrl = '';
  /** Address of the client, as returned by `normaliseAddress`; '' until it is known. */
  address = '';
  #ended = false;

  constructor(res: CoreResponse, context: UpgradeContext) {
    this.#res = res;
    this.#context = context;
    res.onAborted(() => {
      this.#ended = true;
    });
  }

  /**
   * Upgrades to a WebSocket. Must be called in the event loop iteration of the request or in `CoreApp.upgradeLater`.
   * Answers only our own subprotocol: by default the native core echoes the first one offered, which may contain the
   * token.
   */
  accept(request: UpgradeRequest, window: CountedWindow | null, outcome: UpgradeOutcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#res.writeStatus('101 Switching Protocols');
    if (window !== null) for (const [name, value] of rateHeaders(window)) this.#res.writeHeader(name, value);
    const data: SocketData = { outcome, session: null, refused: false, address: this.address, baseUrl: this.baseUrl };
    this.#res.upgrade(
      data,
      request.socketKey,
      request.offersProtocol ? SUBPROTOCOL : '',
      request.extensions,
      this.#context,
    );
  }

  /** Refuses with an HTTP response. Pages in browsers do not see it: they see only close codes. */
  refuse(request: UpgradeRequest, window: CountedWindow, error: CollabError): void {
    if (this.#ended) return;
    this.#ended = true;
    const requestId = request.requestId === '' ? newRequestId() : request.requestId;
    const headers = [
      uncachedJson,
      ['X-Request-Id', requestId],
      ...rateHeaders(window),
      ...refusalHeaders(error),
    ] as const;
    this.#res.cork(() => {
      this.#res.writeStatus(statusLine(error.kind.status));
      for (const [name, value] of headers) this.#res.writeHeader(name, value);
      this.#res.end(wireText(refusalBody(error)));
    });
  }

  /** Closes the connection without a response. */
  drop(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#res.close();
  }
}
