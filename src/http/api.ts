import type { Config } from '../config/schema.ts';
import type { Actor, Context } from '../domain/context.ts';
import { countRequest } from '../domain/rate-limit.ts';
import { CollabError } from '../errors.ts';
import { clientAddress, normaliseAddress } from '../lib/client-address.ts';
import { Networks } from '../lib/networks.ts';
import type { Logger } from '../log.ts';
import { MAX_JSON_BODY_BYTES } from '../model/limits.ts';
import { jsonHead, listHead, nextLink, rateHeaders, resetSeconds } from './answer.ts';
import { API_PREFIX } from './api-prefix.ts';
import { ApiRequest } from './api-request.ts';
import type { OpenStreams } from './event-stream.ts';
import type { Exchange, Header, NoBody } from './exchange.ts';
import { actorOf, type Credential, idempotencyOf, identify, requireAccess } from './guards.ts';
import { parseJsonBody } from './json-body.ts';
import { answerFailure } from './refusal.ts';
import type { Answer, Route } from './route.ts';
import { type Match, Router } from './router.ts';

export interface ApiDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  readonly streams: OpenStreams;
}

/** A body on its way in; null for a route that takes none. */
type Incoming = Promise<Buffer | NoBody> | null;

/**
 * The REST API: takes each request past the guards, in the order rate limit 429, route 404, credential 401, scope 403,
 * size of the body 413, syntax 400 (decisions R4), hands it to its route and answers.
 */
export class Api {
  readonly #deps: ApiDeps;
  readonly #router = new Router<Route>();
  readonly #trusted: Networks;

  constructor(deps: ApiDeps, routes: readonly Route[]) {
    this.#deps = deps;
    this.#trusted = new Networks(deps.config.trustProxy);
    for (const route of routes) this.#router.add(route.method, route.path, route);
  }

  /** Answers a request whose path is `API_PREFIX` or below. To be called in the same turn as the request came in. */
  async serve(exchange: Exchange): Promise<void> {
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    try {
      const match = this.#router.find(exchange.head.method, exchange.head.path.slice(API_PREFIX.length));
      exchange.route = match?.target.operationId ?? '';
      const incoming = match?.target.body === undefined ? null : exchange.receiveBody(MAX_JSON_BODY_BYTES);
      const credential = await identify(this.#deps.ctx, exchange.head.authorization);
      this.#limit(exchange, credential, headers);
      await this.#answer(exchange, match, credential, incoming, headers);
    } catch (thrown) {
      answerFailure(this.#deps.log, exchange, thrown, headers);
    }
  }

  async #answer(exchange: Exchange, match: Match<Route> | null, credential: Credential, incoming: Incoming, headers: Header[]): Promise<void> {
    if (match === null) throw new CollabError('route_not_found', 'There is nothing at this path, or not with this method');
    const { target: route, params } = match;
    const actor = route.credential === 'public' ? null : actorOf(credential);
    const renew = async (): Promise<Actor> => actorOf(await identify(this.#deps.ctx, exchange.head.authorization));
    const request = new ApiRequest({ ctx: this.#deps.ctx, streams: this.#deps.streams, exchange, params, actor, headers, renew });
    if (actor !== null) requireAccess(route, actor, params['roomId'] === undefined ? undefined : request.param('roomId'));
    if (incoming !== null) {
      const bytes = await incoming;
      if (bytes === 'gone') return;
      if (bytes === 'too_large') throw new CollabError('payload_too_large', `The body must be at most ${MAX_JSON_BODY_BYTES} bytes`);
      request.body = parseJsonBody(exchange.head.contentType, bytes);
      request.idempotency = idempotencyOf(route, exchange, bytes);
    }
    const answer = await route.handle(request);
    if (answer !== null) this.#send(exchange, route, answer, headers);
  }

  /** Counts the request on its key, if that has a limit of its own, or on the address it comes from. */
  #limit(exchange: Exchange, credential: Credential, headers: Header[]): void {
    if (exchange.over) return;
    const { ctx, config } = this.#deps;
    const limit = credential instanceof CollabError ? null : credential.rateLimit;
    const window =
      credential instanceof CollabError || limit === null
        ? countRequest(ctx, config, { kind: 'address', address: clientAddress(exchange.peer, exchange.head.forwardedFor, this.#trusted) })
        : countRequest(ctx, config, { kind: 'key', keyId: credential.actor.keyId, limit });
    headers.push(...rateHeaders(window));
    if (window.allowed) return;
    const seconds = resetSeconds(window);
    throw new CollabError('rate_limited', `Rate limit exceeded. Try again in ${seconds}s`, seconds);
  }

  #send(exchange: Exchange, route: Route, answer: Answer, headers: readonly Header[]): void {
    const all: Header[] = [route.list === true ? listHead : jsonHead, ...headers];
    if (typeof answer.nextCursor === 'string') all.push(nextLink(exchange.head, this.#isSecure(exchange), answer.nextCursor));
    if (answer.replayed === true) all.push(['Idempotent-Replayed', 'true']);
    exchange.send(answer.status, all, answer.body);
  }

  /** Whether the client speaks TLS, which only a proxy of ours can tell. */
  #isSecure(exchange: Exchange): boolean {
    return exchange.head.forwardedProto === 'https' && this.#trusted.has(normaliseAddress(exchange.peer) ?? '');
  }
}
