import type { Config } from '../../config/schema.ts';
import type { Actor, Context } from '../../domain/context.ts';
import { streamOf } from '../../domain/events/streams.ts';
import { countRequest } from '../../domain/quotas/rate-limit.ts';
import { countWrite } from '../../domain/quotas/usage.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import { limitsOf } from '../../model/environment.ts';
import { defaultLimits, MAX_JSON_BODY_BYTES } from '../../model/limits.ts';
import { nextLink } from './answer.ts';
import { API_PREFIX } from './api-prefix.ts';
import { ApiRequest } from './api-request.ts';
import { bodyWithFileUrls } from './body-urls.ts';
import { gzipped, wantsGzip } from '../core/compression.ts';
import { jsonHead, listHead, listHeadWithEtag } from '../core/content-headers.ts';
import { corsHeaders, preflightHeaders } from '../core/cors.ts';
import type { OpenStreams } from './open-streams.ts';
import type { Exchange } from '../core/exchange.ts';
import { backendActorOf, adminOf, type KeyLookup, idempotencyOf, lookUpKey, isOfUser, requireAccess, userOf } from './guards.ts';
import { parseJsonBody } from './json-body.ts';
import { isUnmodified, listTag } from './list-tag.ts';
import { answerFailure } from '../core/refusal.ts';
import type { NoBody } from '../core/request-body.ts';
import { enforceRateLimit } from '../core/rate-limit.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Header } from '../../net/response-headers.ts';
import type { TrustedProxies } from '../../net/trusted-proxies.ts';
import type { RequestMeter } from '../core/request-meter.ts';
import { type Answer, isForBrowsers, type Route } from './route.ts';
import type { UploadThrottle } from './upload-throttle.ts';
import { type Match, Router } from '../core/router.ts';

export interface ApiDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly proxies: TrustedProxies;
  readonly streams: OpenStreams;
  /** Where uploads take turns. */
  readonly lane: UploadThrottle;
  /** Null while nobody asks for measurements. */
  readonly meter: RequestMeter | null;
}

/** A body on its way in; null for a request without one, or one that is read as a stream. */
type Incoming = Promise<Buffer | NoBody> | null;

/**
 * The REST API: takes each request past the guards, in the order rate limit 429, route 404, credential 401, scope 403,
 * size of the body 413, syntax 400 (decisions R4), hands it to its route and answers.
 */
export class Api {
  readonly #deps: ApiDeps;
  readonly #router = new Router<Route>();

  constructor(deps: ApiDeps, routes: readonly Route[]) {
    this.#deps = deps;
    for (const route of routes) this.#router.add(route.method, route.path, route);
  }

  /** Answers a request whose path is `API_PREFIX` or below. To be called in the same turn as the request came in. */
  async serve(exchange: Exchange): Promise<void> {
    const { method, path, authorization } = exchange.head;
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    const match = this.#router.find(method, path.slice(API_PREFIX.length));
    try {
      if (method === 'OPTIONS') return this.#preflight(exchange, headers);
      exchange.route = match?.target.operationId ?? '';
      const incoming = match === null ? null : receive(exchange, match.target);
      const found = lookUpKey(this.#deps.ctx, authorization);
      const credential = found instanceof Promise ? await found : found;
      this.#limit(exchange, match?.target ?? null, credential, headers);
      await this.#answer(exchange, match, credential, incoming, headers);
    } catch (thrown) {
      answerFailure(this.#deps.log, exchange, thrown, match === null ? headers : readable(match.target, headers));
    }
  }

  /** Tells a browser what pages may do at a path. Not counted: a page cannot help sending it. */
  #preflight(exchange: Exchange, headers: readonly Header[]): void {
    const routes = this.#router.at(exchange.head.path.slice(API_PREFIX.length)).filter(isForBrowsers);
    if (routes.length === 0) throw nothingHere();
    exchange.send(204, [...preflightHeaders(routes.map(({ method }) => method)), ...headers], '');
  }

  async #answer(exchange: Exchange, match: Match<Route> | null, credential: KeyLookup, incoming: Incoming, headers: Header[]): Promise<void> {
    if (match === null) throw nothingHere();
    const { target: route, params } = match;
    const { ctx, config, streams, lane, meter } = this.#deps;
    const actor = route.credential === 'secret' ? backendActorOf(credential) : isForBrowsers(route) ? await this.#browser(exchange, credential, route, headers) : null;
    const admin = route.credential === 'admin' ? await adminOf(ctx, exchange.head.authorization) : null;
    const renew = async (): Promise<Actor> => backendActorOf(await lookUpKey(ctx, exchange.head.authorization));
    const baseUrl = (): string => this.#deps.proxies.baseUrl(exchange);
    const request = new ApiRequest({ ctx, config, streams, lane, meter, exchange, params, actor, admin, headers, renew, baseUrl });
    if (actor !== null) {
      requireAccess(route, actor, params['roomId'] === undefined ? undefined : request.param('roomId'));
      if (route.access !== 'read') countWrite(ctx, actor);
    }
    exchange.admitBody(route.payload?.limit(request.actor, exchange.head.contentType));
    if (incoming !== null) {
      const bytes = await incoming;
      if (bytes === 'gone') return;
      const limit = actor === null ? defaultLimits.jsonBodyBytes : limitsOf(actor.environment).jsonBodyBytes;
      if (bytes === 'too_large' || (route.payload === undefined && bytes.length > limit)) throw route.payload?.tooLarge(request.actor) ?? tooLarge(limit);
      if (route.body !== undefined) request.body = parseJsonBody(exchange.head.contentType, bytes);
      else if (route.payload !== undefined) request.bytes = bytes;
      request.idempotency = idempotencyOf(route, exchange, bytes);
    }
    const tag = route.conditions === 'log' && actor !== null ? await this.#tag(actor, exchange.head) : null;
    if (tag !== null && isUnmodified(exchange.head, tag)) return exchange.send(304, [listHeadWithEtag(tag), ...headers], '');
    const answer = await route.handle(request);
    if (answer !== null) return this.#send(exchange, route, answer, headers, tag);
  }

  async #tag(actor: Actor, head: RequestHead): Promise<string> {
    const { store } = this.#deps.ctx;
    return listTag(store, await store.lastSeq(streamOf(actor.environment)), actor, head);
  }

  /**
   * Who asks on a route for browsers: of what a request brings, a secret key counts first. Verifying a token costs much, so
   * it waits for the limit.
   */
  async #browser(exchange: Exchange, credential: KeyLookup, route: Route, headers: Header[]): Promise<Actor> {
    const { head } = exchange;
    const actor = route.credential === 'user' || isOfUser(head) ? await userOf(this.#deps.ctx, head, this.#deps.log) : backendActorOf(credential);
    headers.push(...corsHeaders(actor.environment, head.origin));
    return actor;
  }

  /** Counts the request on its key, if that has a limit of its own, or on the address it comes from. */
  #limit(exchange: Exchange, route: Route | null, credential: KeyLookup, headers: Header[]): void {
    if (exchange.over) return;
    const { ctx, config, proxies, meter } = this.#deps;
    const limit = credential instanceof CollabError ? null : credential.rateLimit;
    const window =
      credential instanceof CollabError || limit === null || route?.limit !== undefined
        ? countRequest(ctx, config, { kind: route?.limit ?? 'address', address: proxies.clientAddress(exchange) })
        : countRequest(ctx, config, { kind: 'key', keyId: credential.actor.keyId, limit });
    enforceRateLimit(window, headers, meter);
  }

  /** Sends the answer; a promise only where it has to be compressed first. */
  #send(exchange: Exchange, route: Route, answer: Answer, headers: readonly Header[], tag: string | null): Promise<void> | void {
    const body = route.holdsFiles === true ? bodyWithFileUrls(answer.body, this.#deps.proxies.baseUrl(exchange)) : answer.body;
    const ownHead = tag !== null ? listHeadWithEtag(tag) : route.list === true ? listHead : jsonHead;
    const all: Header[] = [answer.head ?? ownHead, ...headers];
    if (answer.headers !== undefined) all.push(...answer.headers);
    if (typeof answer.nextCursor === 'string') all.push(nextLink(exchange.head, this.#deps.proxies.isSecure(exchange), answer.nextCursor));
    if (answer.replayed === true) all.push(['Idempotent-Replayed', 'true']);
    const isJson = answer.head === undefined || answer.head === listHead;
    if (!isJson || !wantsGzip(exchange.head.acceptEncoding, body)) return exchange.send(answer.status, all, body);
    return gzipped(body).then((bytes) => exchange.send(answer.status, [...all, ['Content-Encoding', 'gzip']], bytes));
  }
}

function receive(exchange: Exchange, { body, payload, upload }: Route): Incoming {
  if (upload === true) exchange.streamBody();
  if (payload !== undefined) return exchange.receiveBody(null);
  // A chunked body is read to its end also where none is wanted: a trailer after it is refused by the core before anything is written.
  return body !== undefined || (exchange.head.chunked && upload !== true) ? exchange.receiveBody(MAX_JSON_BODY_BYTES) : null;
}

/** The headers of a refusal; on a route for browsers the page that asked may read it, whoever that is. */
function readable(route: Route, headers: readonly Header[]): readonly Header[] {
  if (!isForBrowsers(route) || headers.some(([name]) => name === 'Access-Control-Allow-Origin')) return headers;
  return [...headers, ...corsHeaders(null, '')];
}

function tooLarge(limit: number): CollabError {
  return new CollabError('payload_too_large', `The body must be at most ${limit} bytes`);
}

function nothingHere(): CollabError {
  return new CollabError('route_not_found', 'There is nothing at this path, or not with this method');
}
