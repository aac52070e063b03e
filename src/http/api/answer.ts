import type { CountedWindow } from '../../domain/quotas/rate-limit.ts';
import { originOf } from '../../lib/addresses/origin.ts';
import type { Header } from '../core/exchange.ts';
import type { RequestHead } from '../../net/request-head.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const NOSNIFF = 'X-Content-Type-Options: nosniff';
/** JSON is sent compressed to those who take it. */
const VARY = 'Vary: Accept-Encoding';

/**
 * Content type and all other headers that are the same for many answers, in one. Each `writeHeader` is a call into C++
 * that costs about as much as reading the request line; a value that holds the following lines too costs one call for all.
 * They are constant: nothing that a caller sends ever gets into them.
 */
export const jsonHead: Header = ['Content-Type', `${JSON_TYPE}\r\nCache-Control: no-store\r\n${NOSNIFF}\r\n${VARY}`];
/** The same for lists, which caches may keep if they ask again each time. */
export const listHead: Header = ['Content-Type', `${JSON_TYPE}\r\nCache-Control: private, no-cache\r\n${NOSNIFF}\r\n${VARY}`];

/** `listHead` with an ETag of ours. */
export const taggedListHead = (tag: string): Header => ['Content-Type', `${listHead[1]}\r\nETag: ${tag}`];

/** The same for bytes. */
export const bytesHead: Header = ['Content-Type', `application/octet-stream\r\nCache-Control: private, no-cache\r\n${NOSNIFF}`];
/** The same for streams of events. Buffering proxies are told not to. */
export const streamHead: Header = ['Content-Type', `text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n${NOSNIFF}`];

/** The policy that a window was counted under, and where the caller stands. */
export function rateHeaders(window: CountedWindow): Header[] {
  if (window.limit === 0) return [];
  return [
    ['RateLimit-Policy', `"${window.policy}";q=${window.limit};w=60`],
    ['RateLimit', `"${window.policy}";r=${window.remaining};t=${resetSeconds(window)}`],
  ];
}

/** Whole seconds until the window has room again, at least 1. */
export function resetSeconds(window: CountedWindow): number {
  return Math.max(1, Math.ceil(window.resetMs / 1000));
}

/** `Link` to the next page of the list that was asked for. Absolute, unless the request's Host is not one. */
export function nextLink({ host, path, query }: RequestHead, secure: boolean, cursor: string): Header {
  const search = new URLSearchParams(query);
  search.set('cursor', cursor);
  return ['Link', `<${originOf(host, secure)}${path.replaceAll(/[^!-=?-~]/gu, encodeURIComponent)}?${search.toString()}>; rel="next"`];
}
