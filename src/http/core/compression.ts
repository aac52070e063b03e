import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const compress = promisify(gzip);

/** Below this, what compression saves is less than what a packet holds anyway. */
const LEAST_BYTES = 1024;

/** Of bytes that are kept and sent again and again, such as lists: they are compressed once. */
const compressed = new WeakMap<Uint8Array, Promise<Uint8Array>>();

/** Whether JSON is worth compressing, and the client that sent this `Accept-Encoding` ('' for none) takes gzip. */
export function wantsGzip(acceptEncoding: string, body: string | Uint8Array): boolean {
  return acceptEncoding !== '' && body.length >= LEAST_BYTES && acceptsGzip(acceptEncoding);
}

/** The body compressed, off the event loop. Bytes must never be changed after. */
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
  let any = false;
  for (const part of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const accepted = !parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter));
    if (coding === 'gzip' || coding === 'x-gzip') return accepted;
    if (coding === '*') any = accepted;
  }
  return any;
}
