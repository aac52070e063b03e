import type { Header } from '../../net/response-headers.ts';
import { corsHeaders, preflightHeaders } from '../core/cors.ts';
import type { Exchange } from '../core/exchange.ts';
import { routeNotFound } from '../core/send-error.ts';
import type { Route } from './route.ts';

/**
 * Whether pages of other origins may call a route: one that takes what a browser has, a publishable key and a user
 * token.
 */
export function isForBrowsers({ credential }: Pick<Route, 'credential'>): boolean {
  return credential === 'user' || credential === 'either';
}

/**
 * Answers a CORS preflight. It does not count against a limit, because a page cannot avoid it. Throws `route_not_found`
 * if none of the routes is for browsers.
 *
 * @param routes the routes at the path, of every method
 */
export function respondToPreflight(exchange: Exchange, routes: readonly Route[], headers: readonly Header[]): void {
  const allowed = routes.filter(isForBrowsers);
  if (allowed.length === 0)
    throw routeNotFound(
      exchange.head,
      routes.map(({ method }) => method),
    );
  exchange.send(204, [...preflightHeaders(allowed.map(({ method }) => method)), ...headers], '');
}

/**
 * The CORS headers that a refusal needs besides `headers`. On a route for browsers every page may read a refusal that
 * comes before the environment, and with it the allowed origins, is known.
 *
 * @param route null if the request matched none
 */
export function refusalCors(route: Route | null, headers: readonly Header[]): readonly Header[] {
  if (route === null || !isForBrowsers(route) || headers.some(([name]) => name === 'Access-Control-Allow-Origin'))
    return [];
  return corsHeaders(null, '');
}
