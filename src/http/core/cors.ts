import type { Environment } from '../../model/environments/environment.ts';
import type { Header } from '../../net/response-headers.ts';

// The CORS policy (docs/api.md, "From a browser"). Pages may not send `Authorization`, so that a browser cannot use a
// secret key, not even one that has leaked into the code of a page.
const ALLOWED_HEADERS =
  'Content-Type, X-Service-Key, X-Service-Token, If-Match, If-None-Match, Range, Idempotency-Key, X-Request-Id';
const EXPOSED_HEADERS =
  'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, X-Error-Code, Content-Range, ' +
  'Accept-Ranges, Idempotent-Replayed, Collab-Hint';
/** The longest time for which Chromium caches a preflight. */
const MAX_AGE_SECONDS = 7200;

const anyOrigin: readonly Header[] = [
  ['Access-Control-Allow-Origin', `*\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`],
];
const noOrigin: readonly Header[] = [['Vary', 'Origin']];

/**
 * The headers that let pages read a response of a route for browsers. While the environment is not known, as with most
 * refusals, every page may: a refusal contains only its reason. Cookies are never used, so credentials are never
 * allowed.
 *
 * @param environment null if it is not known
 * @param origin the `Origin` of the request; '' for none
 */
export function corsHeaders(environment: Environment | null, origin: string): readonly Header[] {
  const allowed = environment?.settings.allowedOrigins ?? [];
  if (allowed.length === 0) return anyOrigin;
  if (!allowed.includes(origin)) return noOrigin;
  return [
    ['Access-Control-Allow-Origin', `${origin}\r\nAccess-Control-Expose-Headers: ${EXPOSED_HEADERS}`],
    ...noOrigin,
  ];
}

/**
 * The headers of the response to a preflight. A preflight does not identify the environment, so every origin is
 * allowed; the origin is checked with the request itself.
 *
 * @param methods the methods of the routes for browsers at the path
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
