import { containsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';

/** Rewritten forms of cached bytes, such as lists, which are sent many times; null for bytes without file URLs. */
const rewrites = new WeakMap<Uint8Array, { readonly baseUrl: string; readonly body: Uint8Array } | null>();

/**
 * Rewrites JSON as `withFileUrls` does, so that the URLs of all attachments begin with `baseUrl`. The result is cached
 * for bytes, which must never change.
 *
 * @param baseUrlOf as `TrustedProxies.baseUrl`; not called for text, and bytes that are known, to contain no URL
 */
export function bodyWithFileUrls(body: string | Uint8Array, baseUrlOf: () => string): string | Uint8Array {
  if (typeof body === 'string') return containsFileUrls(body) ? withFileUrls(body, baseUrlOf()) : body;
  const cached = rewrites.get(body);
  if (cached === null) return body;
  const baseUrl = baseUrlOf();
  if (baseUrl === '') return body;
  if (cached?.baseUrl === baseUrl) return cached.body;
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  // Cached for the last base URL only: usually there is one, and a client can make up any number of them.
  const rewrite = containsFileUrls(text) ? { baseUrl, body: Buffer.from(withFileUrls(text, baseUrl)) } : null;
  rewrites.set(body, rewrite);
  return rewrite?.body ?? body;
}
