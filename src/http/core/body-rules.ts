import { CollabError } from '../../model/errors.ts';
import type { RequestHead } from '../../net/request-head.ts';

/** The largest body of a GET or HEAD request, in bytes. It is dropped. */
const MAX_UNUSED_BYTES = 64 * 1024;

/**
 * Returns why a request is refused for the body that its head declares, whatever its route is, or null if it is not:
 * `invalid_request` for a trailer, which the core would parse as a request; `invalid_request` for a chunked body of GET or
 * HEAD, which is used to smuggle requests past proxies; `payload_too_large`.
 */
export function bodyRefusal({ method, chunked, trailer, contentLength }: RequestHead): CollabError | null {
  if (trailer !== '') return new CollabError('invalid_request', 'Trailer is not supported: send the request without trailer fields');
  if (method !== 'GET' && method !== 'HEAD') return null;
  if (chunked) return new CollabError('invalid_request', `A ${method} request must have no chunked body`);
  if ((contentLength ?? 0) <= MAX_UNUSED_BYTES) return null;
  return new CollabError('payload_too_large', `The body of a ${method} request must be at most ${MAX_UNUSED_BYTES} bytes, not ${contentLength}`);
}
