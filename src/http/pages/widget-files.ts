import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gzipped, wantsGzip } from '../core/compression.ts';
import { isModified } from '../core/conditions.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';

/** A file of the widget, as it is served. */
interface WidgetFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
  /** Whether the address names the content, so that it never changes. */
  readonly immutable: boolean;
}

/** By ending: the scripts, and the licenses of the libraries in them. */
const types: Readonly<Record<string, string>> = { '.js': 'text/javascript; charset=utf-8', '.txt': 'text/plain; charset=utf-8' };
const ENTRY = 'widget.js';

/**
 * The files of the widget by path: `/widget.js` is the newest script, `/widget-<hash>.js` the same under a name that never
 * changes, `/widget/…` what it loads later. `/widget.json` names the current address and its subresource hash. Empty if
 * `npm run build` has not built them.
 */
export function widgetFiles(): ReadonlyMap<string, WidgetFile> {
  const folder = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/widget/' : '../widget/', import.meta.url);
  const names = filesIn(folder);
  if (!names.includes(ENTRY)) return new Map();
  const files = new Map(names.map((name) => [`/${name}`, file(types[extname(name)] ?? '', readFileSync(new URL(name, folder)), name !== ENTRY)]));
  const entry = files.get(`/${ENTRY}`);
  if (entry === undefined) return files;
  const script = `/widget-${hash('sha256', entry.bytes, 'hex').slice(0, 12)}.js`;
  files.set(script, { ...entry, immutable: true });
  const description = { script, integrity: `sha384-${hash('sha384', entry.bytes, 'base64')}` };
  files.set('/widget.json', file('application/json; charset=utf-8', Buffer.from(JSON.stringify(description)), false));
  return files;
}

/** Sends a file of the widget. Pages of any origin may load it. */
export async function sendWidgetFile(exchange: Exchange, { type, bytes, etag, immutable }: WidgetFile, headers: readonly Header[]): Promise<void> {
  const all: Header[] = [
    ['Content-Type', type],
    ['Cache-Control', immutable ? 'public, max-age=31536000, immutable' : 'no-cache'],
    ['ETag', etag],
    ['Vary', 'Accept-Encoding'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Access-Control-Allow-Origin', '*'],
    ['Cross-Origin-Resource-Policy', 'cross-origin'],
    ...headers,
  ];
  if (!isModified(exchange.head, etag)) return exchange.send(304, all, '');
  if (!wantsGzip(exchange.head.acceptEncoding, bytes)) return exchange.send(200, all, bytes);
  exchange.send(200, [...all, ['Content-Encoding', 'gzip']], await gzipped(bytes));
}

function file(type: string, bytes: Buffer, immutable: boolean): WidgetFile {
  return { type, bytes, etag: `W/"${hash('sha256', bytes, 'base64url').slice(0, 22)}"`, immutable };
}

/** The files of a folder and of those in it, with `/` between their parts; none if it does not exist. */
function filesIn(folder: URL): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/')).filter((name) => Object.hasOwn(types, extname(name)));
  } catch {
    return [];
  }
}
