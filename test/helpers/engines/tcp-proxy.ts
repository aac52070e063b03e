import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

/** One connection through a proxy. */
interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

/** A proxy on a port of the loopback interface whose connections a test cuts, stalls and redirects. */
export interface TcpProxy {
  readonly port: number;
  /** The port that new connections lead to. */
  target: number;
  /** Returns after how many bytes, of both directions, a new connection is cut; absent for never. */
  cutAfter: (() => number) | undefined;
  /** The connections that are open. */
  readonly links: ReadonlySet<Link>;
  /** Cuts all connections, or one. */
  cut(link?: Link): void;
}

/** Starts a proxy that ends with the test. */
export async function startTcpProxy(t: Test, target: number): Promise<TcpProxy> {
  const links = new Set<Link>();
  const cut = (one?: Link): void => {
    for (const link of one === undefined ? links : [one]) {
      links.delete(link);
      for (const socket of [link.client, link.server]) socket.destroy();
    }
  };
  const server = createServer((client) => {
    const link: Link = { client, server: createConnection(proxy.target, '127.0.0.1') };
    links.add(link);
    let left = proxy.cutAfter?.() ?? Number.POSITIVE_INFINITY;
    const pass = (from: Socket, to: Socket): void => {
      from.on('data', (chunk: Buffer) => {
        if (left === Number.POSITIVE_INFINITY) {
          if (!to.write(chunk)) from.pause();
          return;
        }
        to.write(chunk.subarray(0, left));
        left -= chunk.length;
        // What was passed on arrives before the end.
        if (left <= 0) setImmediate(() => cut(link));
      });
      to.on('drain', () => from.resume());
      from.on('close', () => cut(link)).on('error', () => cut(link));
    };
    pass(client, link.server);
    pass(link.server, client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port');
  const proxy: TcpProxy = { port: address.port, target, cutAfter: undefined, links, cut };
  t.teardown(() => {
    cut();
    server.close();
  });
  return proxy;
}
