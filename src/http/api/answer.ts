import { originOf } from '../../lib/addresses/origin.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Header } from '../../net/response-headers.ts';

/** `Link` to the next page of the list that was asked for. Absolute, unless the request's Host is not one. */
export function nextLink({ host, path, query }: RequestHead, secure: boolean, cursor: string): Header {
  const search = new URLSearchParams(query);
  search.set('cursor', cursor);
  return ['Link', `<${originOf(host, secure)}${path.replaceAll(/[^!-=?-~]/gu, encodeURIComponent)}?${search.toString()}>; rel="next"`];
}
