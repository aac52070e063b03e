import type { Header } from '../../net/response-headers.ts';
import type { Exchange } from '../core/exchange.ts';
import { routeNotFound } from '../core/send-error.ts';
import { builtFile } from './built-file.ts';
import { anyOrigin, sendStaticFile } from './static-file.ts';

/** `dist/sdk/manifest.json`: the files by their plain names. */
interface Manifest {
  readonly version: string;
  readonly files: Readonly<Record<string, { readonly path: string }>>;
}

/** Path of the files of the SDK. */
export const SDK_PREFIX = '/sdk/';

/**
 * Sends the manifest of the SDK, or one of its files. The plain name (`collab.js`) is that of the newest build, which a
 * browser must ask for again; the name with a hash never changes its content. Pages of every origin may load them.
 * Throws `route_not_found` for any other name.
 */
export async function sendSdk(exchange: Exchange, headers: readonly Header[]): Promise<void> {
  const name = exchange.head.path.slice(SDK_PREFIX.length);
  const manifest = await builtFile('sdk/manifest.json');
  const { files } = JSON.parse(manifest.toString()) as Manifest;
  const immutable = Object.values(files).some(({ path }) => path === SDK_PREFIX + name);
  if (name !== 'manifest.json' && !immutable && !Object.hasOwn(files, name)) throw routeNotFound(exchange.head);

  const bytes = name === 'manifest.json' ? manifest : await builtFile(`sdk/${name}`);
  const type = name.endsWith('.json') ? 'application/json; charset=utf-8' : 'text/javascript; charset=utf-8';
  await sendStaticFile(exchange, { type, bytes, immutable }, [...anyOrigin, ...headers]);
}
