import { CollabError } from '../../model/errors.ts';
import type { RequestHead } from '../../net/request-head.ts';

/** Most bytes of a body that a GET or HEAD request may have; it is dropped. */
const MOST_UNWANTED_BYTES = 64 * 1024;

/**
 * Why a request is refused for the kind of body that its head declares, whatever its route; null when it is not.
 * `invalid_request` for a trailer, which the core would parse as a request, and for a chunked body where there should be
 * none, which is how requests are smuggled past proxies; `payload_too_large`.
 */
export function refusedBody({ method, chunked, trailer, contentLength }: RequestHead): CollabError | null {
  if (trailer !== '') return new CollabError('invalid_request', 'Trailer is not supported: send the request without trailer fields');
  if (method !== 'GET' && method !== 'HEAD') return null;
  if (chunked) return new CollabError('invalid_request', `A ${method} request must have no chunked body`);
  if ((contentLength ?? 0) <= MOST_UNWANTED_BYTES) return null;
  return new CollabError('payload_too_large', `The body of a ${method} request must be at most ${MOST_UNWANTED_BYTES} bytes`);
}
