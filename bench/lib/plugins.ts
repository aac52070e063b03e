import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Installation } from './collab.ts';

/** A webhook endpoint in this process. */
export interface Receiver {
  readonly url: string;
  /** When the first delivery about each comment arrived, by its id. */
  readonly arrivals: ReadonlyMap<string, number>;
  close(): void;
}

/** Starts an endpoint that answers every delivery with this status. */
export async function startReceiver(status = 204): Promise<Receiver> {
  const arrivals = new Map<string, number>();
  const server = createServer((request, response) => {
    const at = performance.now();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: { id: string } };
      if (!arrivals.has(data.id)) arrivals.set(data.id, at);
      response.writeHead(status).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    arrivals,
    close: () => void server.close(),
  };
}

/** Sets the plugins of a configuration. The server must be started after that. */
export function configurePlugins({ dir }: Installation, plugins: readonly object[]): void {
  const file = join(dir, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  writeFileSync(file, JSON.stringify({ ...config, plugins }, null, 2));
}

/** Adds a webhook endpoint for events of a type, and returns its id. */
export function addWebhook({ bin, dir }: Installation, url: string, type: string): string {
  const printed = execFileSync(
    process.execPath,
    [bin, 'webhook', 'add', '--env', 'default', '--url', url, '--events', type, '--dir', dir, '--json'],
    { encoding: 'utf8' },
  );
  return (JSON.parse(printed) as { id: string }).id;
}

/**
 * Writes a plugin into the folder of an installation and returns its path.
 *
 * @param hook a statement that registers its hook with `host`
 */
export function writePlugin({ dir }: Installation, name: string, hook: string): string {
  const path = join(dir, `${name}.mjs`);
  writeFileSync(
    path,
    `import { definePlugin } from 'collab/plugin';
export default definePlugin({ name: '${name}', version: '1.0.0', apiVersion: 1, config: { type: 'object', properties: {} }, setup(host) { ${hook} } });
`,
  );
  return path;
}
