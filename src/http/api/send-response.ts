import type { RequestHead } from '../../net/request-head.ts';
import type { Header } from '../../net/response-headers.ts';
import { wantsGzip } from '../core/compression.ts';
import { jsonHead, listHead, listHeadWithEtag } from '../core/content-headers.ts';
import type { ApiRequest } from './api-request.ts';
import { bodyWithFileUrls } from './body-urls.ts';
import type { ApiResponse, Route } from './route.ts';

/** The body of what the handler of a route returned, as it is sent without compression. */
export function responseBody(request: ApiRequest, route: Route, { body }: ApiResponse): ApiResponse['body'] {
  return route.hasFileUrls === true ? bodyWithFileUrls(body, () => request.baseUrl()) : body;
}

/** Whether a body is sent as gzip. Most are not: their clients then need not wait for a promise. */
export function isCompressed({ exchange }: ApiRequest, { head }: ApiResponse, body: ApiResponse['body']): boolean {
  const isJson = head === undefined || head === listHead;
  return isJson && wantsGzip(exchange.head.acceptEncoding, body);
}

/**
 * Sends what the handler of a route returned.
 *
 * @param body `responseBody`
 * @param etag the ETag of the list, or null
 */
export function sendResponse(
  request: ApiRequest,
  route: Route,
  response: ApiResponse,
  body: ApiResponse['body'],
  etag: string | null,
): void {
  request.exchange.send(response.status, responseHeaders(request, route, response, etag), body);
}

/** As `sendResponse`, with the compressed body. */
export function sendCompressed(
  request: ApiRequest,
  route: Route,
  response: ApiResponse,
  gzip: Uint8Array,
  etag: string | null,
): void {
  const headers = responseHeaders(request, route, response, etag);
  request.exchange.send(response.status, [...headers, ['Content-Encoding', 'gzip']], gzip);
}

/** Answers that the list with this ETag has not changed. */
export function sendNotModified({ exchange, headers }: ApiRequest, etag: string): void {
  exchange.send(304, [listHeadWithEtag(etag), ...headers], '');
}

function responseHeaders(
  { exchange, headers, services }: ApiRequest,
  route: Route,
  response: ApiResponse,
  etag: string | null,
): Header[] {
  const defaultHead = etag !== null ? listHeadWithEtag(etag) : route.list === true ? listHead : jsonHead;
  const all: Header[] = [response.head ?? defaultHead, ...headers];
  if (response.headers !== undefined) all.push(...response.headers);
  if (typeof response.nextCursor === 'string')
    all.push(nextLink(exchange.head, services.proxies.baseUrl(exchange), response.nextCursor));
  if (response.replayed === true) all.push(['Idempotent-Replayed', 'true']);
  return all;
}

/**
 * `Link` to the next page of a list: an absolute URL, or a path if there is no `publicUrl` and the request's `Host` is
 * not a valid host. A client sends its key there, so the address is never that of a server behind a proxy.
 */
function nextLink({ path, query }: RequestHead, baseUrl: string, cursor: string): Header {
  const search = new URLSearchParams(query);
  search.set('cursor', cursor);
  return ['Link', `<${baseUrl}${path.replaceAll(/[^!-=?-~]/gu, encodeURIComponent)}?${search.toString()}>; rel="next"`];
}
