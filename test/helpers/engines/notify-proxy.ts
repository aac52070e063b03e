import type { Test } from 'tap';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A proxy in front of a PostgreSQL that can answer notifications as a server does whose queue of them is full. */
export interface NotifyProxy {
  readonly port: number;
  /** Whether it refuses them. */
  refuses: boolean;
}

/** Starts a proxy in front of a port of the loopback interface. It ends with the test. */
export async function startNotifyProxy(t: Test, port: number): Promise<NotifyProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
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
      if (proxy.refuses && data.includes('Q') && data.includes('notify collab_')) client.write(refusal);
      else upstream.write(data);
    });
    upstream.on('data', (data) => client.write(data));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  const proxy = { port: typeof address === 'object' && address !== null ? address.port : 0, refuses: false };
  return proxy;
}

function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.byteLength(body));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
}

/** The error, and that the server is ready for the next statement. */
const refusal = Buffer.concat([
  message('E', 'SERROR\0VERROR\0C54000\0Mtoo many notifications in the NOTIFY queue\0\0'),
  message('Z', 'I'),
]);
