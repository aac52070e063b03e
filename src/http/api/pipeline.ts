import { streamOf } from '../../domain/events/streams.ts';
import { countWrite } from '../../domain/quotas/usage.ts';
import type { Header } from '../../net/response-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import { gzipped } from '../core/compression.ts';
import { sendError, routeNotFound } from '../core/send-error.ts';
import { Router } from '../core/router.ts';
import { isCompressed, responseBody, sendCompressed, sendNotModified, sendResponse } from './send-response.ts';
import { API_PREFIX } from './api-prefix.ts';
import { ApiRequest } from './api-request.ts';
import { authenticate, backendOf, lookUpKey } from './authentication.ts';
import { requireScope } from './authorization.ts';
import { respondToPreflight, refusalCors } from './browser-access.ts';
import { listEtag, namesEtag } from './list-etag.ts';
import { checkNames } from './misspelled-names.ts';
import { countAgainstLimit } from './count-against-limit.ts';
import { acceptBody, acceptNoBody, admitBody, startBody } from './accept-body.ts';
import type { Route } from './route.ts';
import type { ApiServices } from './services.ts';

/**
 * The REST API. `serve` takes each request through the same steps in the same order, so that one with several faults
 * always gets the same refusal (docs/errors.md): rate limit 429, route 404, credential 401, scope 403, body 413 and
 * 400. The handler of the route validates the rest of the input, except misspelled names (`checkNames`).
 */
export class ApiPipeline {
  readonly #services: ApiServices;
  readonly #router = new Router<Route>();

  constructor(services: ApiServices, routes: readonly Route[]) {
    this.#services = services;
    for (const route of routes) this.#router.add(route.method, route.path, route);
  }

  /**
   * Answers a request whose path is `API_PREFIX` or below. Must be called in the callback that delivered the request.
   * Never rejects. Of the steps before the handler, most requests only wait for the count of the rate limit.
   */
  async serve(exchange: Exchange): Promise<void> {
    const services = this.#services;
    const { method, path, authorization } = exchange.head;
    const subpath = path.slice(API_PREFIX.length);
    const headers: Header[] = [['X-Request-Id', exchange.id]];
    const match = this.#router.find(method, subpath);
    const route = match?.target ?? null;
    try {
      if (method === 'OPTIONS') return respondToPreflight(exchange, this.#router.at(subpath), headers);
      exchange.route = route?.operationId ?? '';
      // The core delivers the body only to a reader that is attached before the first await.
      const arriving = route === null ? null : startBody(exchange, route);

      // A key may have a limit of its own, so it is looked up first. A refusal of the key is thrown after the limit.
      const key = await lookUpKey(services.ctx, authorization);
      await countAgainstLimit(services, exchange, route, key, headers);

      if (match === null || route === null)
        throw routeNotFound(
          exchange.head,
          this.#router.at(subpath).map((other) => other.method),
        );
      const request = new ApiRequest(services, exchange, match.params, headers);

      if (route.credential === 'secret') request.caller = backendOf(key);
      else await authenticate(request, route, key);
      requireScope(request, route);
      if (request.caller !== null && route.access !== 'read' && route.method !== 'GET')
        await countWrite(services.ctx, request.caller);

      admitBody(request, route);
      if (arriving !== null) {
        const body = await arriving;
        if (body === 'aborted') return;
        acceptBody(request, route, body);
      } else acceptNoBody(request, route);

      checkNames(request, route);
      const etag =
        route.conditions === 'log'
          ? listEtag(request, await services.ctx.store.lastSeq(streamOf(request.actor.environment)))
          : null;
      if (etag !== null && namesEtag(exchange.head, etag)) return sendNotModified(request, etag);

      const response = await route.handle(request);
      if (response === null) return;
      const body = responseBody(request, route, response);
      if (isCompressed(request, response, body)) sendCompressed(request, route, response, await gzipped(body), etag);
      else sendResponse(request, route, response, body, etag);
    } catch (thrown) {
      sendError(services.log, exchange, thrown, [...headers, ...refusalCors(route, headers)]);
    }
  }
}
