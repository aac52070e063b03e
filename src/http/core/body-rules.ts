import { CollabError } from '../../model/errors.ts';
import type { RequestHead } from '../../net/request-head.ts';

/** The largest body of a GET or HEAD request, in bytes. It is dropped. */
const MAX_UNUSED_BYTES = 64 * 1024;

/** Chunks of any size that a body may have. */
const FREE_CHUNKS = 256;
/** The least bytes that each further chunk must have, on average over the whole body. */
const MIN_CHUNK_BYTES = 64;

/**
 * Counts the chunks of a chunked body. The core passes each one on in a call of its own, so bytes that come in tiny
 * chunks cost a thousand times the processor time of others, whether they are kept or dropped.
 */
export class ChunkCount {
  #chunks = 0;
  #bytes = 0;

  /**
   * Counts a chunk. Returns what is due: `refuse` if the body has too many chunks for its size, `close` if the client
   * has sent as many again since.
   */
  add(bytes: number): 'refuse' | 'close' | null {
    this.#chunks++;
    this.#bytes += bytes;
    const excess = this.#chunks - FREE_CHUNKS - this.#bytes / MIN_CHUNK_BYTES;
    if (excess <= 0) return null;
    return excess > FREE_CHUNKS ? 'close' : 'refuse';
  }
}

/** The refusal of a body in more chunks than `ChunkCount` allows. */
export function tooManyChunks(): CollabError {
  return new CollabError(
    'invalid_request',
    `The body comes in too many small chunks: they must have ${MIN_CHUNK_BYTES} bytes on average`,
  );
}

/**
 * Returns why a request is refused for the body that its head declares, whatever its route is, or null if it is not:
 * `invalid_request` for a trailer, which the core would parse as a request; `invalid_request` for a chunked body of GET
 * or HEAD, which is used to smuggle requests past proxies; `payload_too_large`.
 */
export function bodyRefusal({ method, chunked, trailer, contentLength }: RequestHead): CollabError | null {
  if (trailer !== '')
    return new CollabError('invalid_request', 'Trailer is not supported: send the request without trailer fields');
  if (method !== 'GET' && method !== 'HEAD') return null;
  if (chunked) return new CollabError('invalid_request', `A ${method} request must have no chunked body`);
  if ((contentLength ?? 0) <= MAX_UNUSED_BYTES) return null;
  return new CollabError(
    'payload_too_large',
    `The body of a ${method} request must be at most ${MAX_UNUSED_BYTES} bytes, not ${contentLength}`,
  );
}
