import type { RequestHead } from '../../net/request-head.ts';
import type { Header } from '../../net/response-headers.ts';
import { gzipped, wantsGzip } from '../core/compression.ts';
import { jsonHead, listHead, listHeadWithEtag } from '../core/content-headers.ts';
import type { ApiRequest } from './api-request.ts';
import { bodyWithFileUrls } from './body-urls.ts';
import type { ApiResponse, Route } from './route.ts';

/**
 * Sends what the handler of a route returned.
 *
 * @param etag the ETag of the list, or null
 */
export async function sendResponse(
  request: ApiRequest,
  route: Route,
  response: ApiResponse,
  etag: string | null,
): Promise<void> {
  const { exchange } = request;
  const body = route.hasFileUrls === true ? bodyWithFileUrls(response.body, () => request.baseUrl()) : response.body;
  const headers = responseHeaders(request, route, response, etag);
  const isJson = response.head === undefined || response.head === listHead;
  if (!isJson || !wantsGzip(exchange.head.acceptEncoding, body)) return exchange.send(response.status, headers, body);
  exchange.send(response.status, [...headers, ['Content-Encoding', 'gzip']], await gzipped(body));
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
