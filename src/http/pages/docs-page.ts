import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';
import { builtFile } from './built-file.ts';
import { sendStaticFile } from './static-file.ts';

/** The files of the API reference: path -> file in dist/docs and its content type. */
export const docsFiles: Readonly<Record<string, { readonly file: string; readonly type: string }>> = {
  '/docs': { file: 'index.html', type: 'text/html; charset=utf-8' },
  '/docs/page.js': { file: 'page.js', type: 'text/javascript; charset=utf-8' },
  '/docs/page.css': { file: 'page.css', type: 'text/css; charset=utf-8' },
  '/docs/swagger-ui-bundle.js': { file: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  '/docs/swagger-ui.css': { file: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
  '/docs/icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
};

/** Allows only what this server serves: no inline script or style, no other host. The viewer's icons are data URLs. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const sameOriginPage: readonly Header[] = [
  ['Content-Security-Policy', POLICY],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
];

/**
 * Sends a file of the API reference, which is read at its first request, or leads from `/docs/` to `/docs`. Rejects if
 * it was not built.
 */
export async function sendDocs(exchange: Exchange, path: string, headers: readonly Header[]): Promise<void> {
  // The references of the page are relative, and so is this: a proxy may serve all of it below a path of its own.
  if (path === '/docs' && exchange.head.path.endsWith('/'))
    return exchange.send(308, [['Location', '../docs'], ...headers], '');
  const { file, type } = docsFiles[path] ?? { file: '', type: '' };
  const bytes = await builtFile(`docs/${file}`);
  await sendStaticFile(exchange, { type, bytes, immutable: false }, [...sameOriginPage, ...headers]);
}
