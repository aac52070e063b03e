import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

/** When a connection is cut that has brought `text` to the server: not at all, before the server gets it, or after. */
export type Cut = 'never' | 'before' | 'after';

/** A TCP proxy that cuts connections. */
export interface CuttingProxy {
  readonly port: number;
  /**
   * How the next statements that contain the text are treated; each is asked once. Bytes are the answer in place of that
   * of the server, which gets nothing.
   */
  onText(text: string, decide: () => Cut | Buffer): void;
  /** Cuts each connection after a random number of bytes of the server, less than this; Infinity: none. */
  cutWithin(bytes: number): void;
  /** Cuts all connections, and refuses new ones until it is called with true. */
  accept(accepts: boolean): void;
}

/** Starts a proxy in front of a port of the loopback interface. It ends with the test. */
export async function startCuttingProxy(t: Test, port: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let bytes = Infinity;
  let accepts = true;
  let text = '';
  let decide = (): Cut | Buffer => 'never';
  const server = createServer((client) => {
    if (!accepts) return void client.destroy();
    const upstream = connect(port, '127.0.0.1');
    let left = Number.isFinite(bytes) ? Math.floor(Math.random() * bytes) : Infinity;
    let silent = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => {
      const cut = text !== '' && data.includes(text) ? decide() : 'never';
      if (cut === 'before') return void client.destroy();
      if (Buffer.isBuffer(cut)) return void client.write(cut);
      if (cut === 'after') silent = true;
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      // The server has done what the client asked for.
      if (silent) return void client.destroy();
      if (data.length > left) client.end(data.subarray(0, left));
      else client.write(data);
      left -= data.length;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    onText: (newText, newDecide) => {
      text = newText;
      decide = newDecide;
    },
    cutWithin: (newBytes) => (bytes = newBytes),
    accept: (newAccepts) => {
      accepts = newAccepts;
      if (!accepts) for (const socket of sockets) socket.destroy();
    },
  };
}
