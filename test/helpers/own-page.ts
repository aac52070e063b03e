import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import type { Cluster } from './cluster.ts';

/** Serves one page of another origin until the test ends; returns its address. */
export async function serveHtml(
  t: Test,
  html: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', ...headers }).end(html),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/**
 * Serves a page of another origin with the widget in it, in the room `own`, signed in as ann or with another token;
 * returns its address.
 */
export async function servePage(
  t: Test,
  cluster: Cluster,
  body: string,
  attributes = '',
  token?: string,
): Promise<string> {
  const session = (await (await fetch(`${cluster.url}/demo/session?user=ann`)).json()) as {
    publishableKey: string;
    token: string;
  };
  const widget = `<collab-comments publishable-key="${session.publishableKey}" room="own" token="${token ?? session.token}"></collab-comments>`;
  const html = `<!doctype html><html lang="en" ${attributes}><title>Own</title><script type="module" src="${cluster.url}/widget.js"></script><body>${body}${widget}`;
  return serveHtml(t, html);
}
