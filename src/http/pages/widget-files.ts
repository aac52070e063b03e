import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { StaticFile } from './static-file.ts';

/** By ending: the scripts, and the licenses of the libraries in them. */
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
};
const ENTRY = 'widget.js';

/**
 * The files of the widget by path: `/widget.js` is the newest script, `/widget-<hash>.js` the same under a name that
 * never changes, `/widget/…` what it loads later. `/widget.json` names the current address and its subresource hash.
 * Empty if `npm run build` has not built them.
 */
export function widgetFiles(): ReadonlyMap<string, StaticFile> {
  const folder = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/widget/' : '../widget/', import.meta.url);
  const names = filesIn(folder);
  if (!names.includes(ENTRY)) return new Map();
  const files = new Map<string, StaticFile>(
    names.map((name) => [
      `/${name}`,
      { type: types[extname(name)] ?? '', bytes: readFileSync(new URL(name, folder)), immutable: name !== ENTRY },
    ]),
  );
  const entry = files.get(`/${ENTRY}`);
  if (entry === undefined) return files;
  const script = `/widget-${hash('sha256', entry.bytes, 'hex').slice(0, 12)}.js`;
  files.set(script, { ...entry, immutable: true });
  const description = { script, integrity: `sha384-${hash('sha384', entry.bytes, 'base64')}` };
  files.set('/widget.json', {
    type: 'application/json; charset=utf-8',
    bytes: Buffer.from(JSON.stringify(description)),
    immutable: false,
  });
  return files;
}

/** The files of a folder and of those in it, with `/` between their parts; none if it does not exist. */
function filesIn(folder: URL): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => name.replaceAll('\\', '/'))
      .filter((name) => Object.hasOwn(types, extname(name)));
  } catch {
    return [];
  }
}
