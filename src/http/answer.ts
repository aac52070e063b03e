import type { CountedWindow } from '../domain/rate-limit.ts';
import type { Header } from './exchange.ts';
import type { RequestHead } from './request-head.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const NOSNIFF = 'X-Content-Type-Options: nosniff';

/**
 * Content type and all other headers that are the same for many answers, in one. Each `writeHeader` is a call into C++
 * that costs about as much as reading the request line; a value that holds the following lines too costs one call for all.
 * They are constant: nothing that a caller sends ever gets into them.
 */
export const jsonHead: Header = ['Content-Type', `${JSON_TYPE}\r\nCache-Control: no-store\r\n${NOSNIFF}`];
/** The same for lists, which caches may keep if they ask again each time. */
export const listHead: Header = ['Content-Type', `${JSON_TYPE}\r\nCache-Control: private, no-cache\r\n${NOSNIFF}`];
/** The same for streams of events. Buffering proxies are told not to. */
export const streamHead: Header = ['Content-Type', `text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n${NOSNIFF}`];

/** The policy that a window was counted under, and where the caller stands. */
export function rateHeaders(window: CountedWindow): Header[] {
  if (window.limit === 0) return [];
  return [
    ['RateLimit-Policy', `"default";q=${window.limit};w=60`],
    ['RateLimit', `"default";r=${window.remaining};t=${resetSeconds(window)}`],
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
  const origin = /^[A-Za-z0-9.:[\]_-]+$/.test(host) ? `${secure ? 'https' : 'http'}://${host}` : '';
  return ['Link', `<${origin}${path.replaceAll(/[^!-=?-~]/gu, encodeURIComponent)}?${search.toString()}>; rel="next"`];
}
