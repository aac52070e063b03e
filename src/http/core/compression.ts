import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { acceptEntries } from './accepted.ts';

const compress = promisify(gzip);

/** A smaller body fits into one packet anyway. */
const MIN_BYTES = 1024;

/** Compressed forms of cached bytes, such as lists, which are sent many times. */
const compressed = new WeakMap<Uint8Array, Promise<Uint8Array>>();

/**
 * Whether a body is worth compressing and the client accepts gzip.
 *
 * @param acceptEncoding the `Accept-Encoding` of the request; '' for none
 */
export function wantsGzip(acceptEncoding: string, body: string | Uint8Array): boolean {
  return acceptEncoding !== '' && body.length >= MIN_BYTES && acceptsGzip(acceptEncoding);
}

/**
 * The compressed body, which is made outside the event loop. The result is cached for bytes, which must never change.
 */
export function gzipped(body: string | Uint8Array): Promise<Uint8Array> {
  if (typeof body === 'string') return compress(body);
  let promise = compressed.get(body);
  if (promise === undefined) {
    promise = compress(body);
    compressed.set(body, promise);
  }
  return promise;
}

function acceptsGzip(acceptEncoding: string): boolean {
  let acceptsAny = false;
  for (const { name, isAccepted } of acceptEntries(acceptEncoding)) {
    if (name === 'gzip' || name === 'x-gzip') return isAccepted;
    if (name === '*') acceptsAny = isAccepted;
  }
  return acceptsAny;
}
