import type { Environment } from '../../model/environment.ts';
import type { Header } from '../../net/response-headers.ts';

// What pages of other origins may do (docs/api.md, "From a browser"). `Authorization` is not among the headers that they may send: a
// browser then cannot use a secret key, not even one that has leaked into the code of a page.
const ALLOWED_HEADERS = 'Content-Type, X-Service-Key, X-Service-Token, If-Match, If-None-Match, Range, Idempotency-Key, X-Request-Id';
const EXPOSED_HEADERS =
  'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, X-Error-Code, Content-Range, Accept-Ranges, Idempotent-Replayed';
/** The longest that Chromium remembers a preflight. */
const MAX_AGE_SECONDS = 7200;

const anyOrigin: readonly Header[] = [['Access-Control-Allow-Origin', `*\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`]];
const noOrigin: readonly Header[] = [['Vary', 'Origin']];

/**
 * Who may read an answer of a route for browsers. While the environment is not known, as with most refusals, that is
 * everybody: a refusal says only why. No cookie is ever taken, so credentials are never allowed.
 *
 * @param origin what the request says it comes from, '' for none
 */
export function corsHeaders(environment: Environment | null, origin: string): readonly Header[] {
  const allowed = environment?.settings.allowedOrigins ?? [];
  if (allowed.length === 0) return anyOrigin;
  if (!allowed.includes(origin)) return noOrigin;
  return [['Access-Control-Allow-Origin', `${origin}\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`], ...noOrigin];
}

/**
 * The answer to a preflight, which says nothing of who asks: it allows every origin, and the request itself is checked.
 *
 * @param methods of the routes for browsers at that path
 */
export function preflightHeaders(methods: readonly string[]): readonly Header[] {
  const allowed = methods.includes('GET') ? ['GET', 'HEAD', ...methods.filter((method) => method !== 'GET')] : methods;
  return [
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Allow-Methods', allowed.join(', ')],
    ['Access-Control-Allow-Headers', ALLOWED_HEADERS],
    ['Access-Control-Max-Age', String(MAX_AGE_SECONDS)],
  ];
}
