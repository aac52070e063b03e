import { holdsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';

/** What became of bytes that are kept and sent again and again, such as lists; null where they hold no file. */
const rewritten = new WeakMap<Uint8Array, { readonly baseUrl: string; readonly body: Uint8Array } | null>();

/** JSON of an answer with the URLs of all attachments beginning with `baseUrl`, as `withFileUrls`. Bytes must never be changed after. */
export function bodyWithFileUrls(body: string | Uint8Array, baseUrl: string): string | Uint8Array {
  if (typeof body === 'string') return withFileUrls(body, baseUrl);
  const known = rewritten.get(body);
  if (known === null || baseUrl === '') return body;
  if (known?.baseUrl === baseUrl) return known.body;
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  // Kept for the last address only: there is hardly ever another, and a caller could send any number of them.
  const made = holdsFileUrls(text) ? { baseUrl, body: Buffer.from(withFileUrls(text, baseUrl)) } : null;
  rewritten.set(body, made);
  return made?.body ?? body;
}
