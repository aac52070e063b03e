import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import type { CoreKind, CoreResponse } from '../../src/net/core.ts';
import { ReadBarrier, pollBatches } from '../../src/net/read-barrier.ts';
import { createServer } from '../../src/net/listen.ts';
import { noNativeCore } from '../helpers/core.ts';

/** libuv asks the system for at most as many ready sockets at once (deps/uv/src/unix/linux.c). */
const READY_AT_ONCE = 1024;
const DELIVERY_MS = 100;
const GET = 'GET /later HTTP/1.1\r\nHost: x\r\n\r\n';

interface Watched {
  readonly port: number;
  /** What was announced and handled, in order. */
  readonly order: string[];
  /** Responds to all requests of `/later`. */
  respond(): void;
}

/**
 * Serves `/later`, and the other paths at once. Every handled request of a path is preceded by `announced` if it was.
 */
async function serve(t: Test, core: CoreKind): Promise<Watched> {
  const order: string[] = [];
  const input = new ReadBarrier(() => order.push('announced'), pollBatches(core));
  const server = createServer(core, input);
  const waiting: CoreResponse[] = [];
  const end = (response: CoreResponse, hasUnreadBody = false): void => {
    response.cork(() => response.end('ok'));
    input.onResponse(hasUnreadBody);
  };
  server.app.any('/*', (response, request) => {
    const path = request.getUrl();
    order.push(path);
    response.onAborted(() => undefined);
    if (path === '/later') waiting.push(response);
    else end(response, path === '/unread');
  });
  server.app.ws('/socket', { message: () => order.push('message') });
  const port = await server.listen('127.0.0.1', 0);
  t.teardown(() => server.close());
  return { port, order, respond: () => waiting.splice(0).forEach((response) => end(response)) };
}

async function connectAll(t: Test, port: number, count: number): Promise<Socket[]> {
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    }),
  );
  t.teardown(() => sockets.forEach((socket) => socket.destroy()));
  return sockets;
}

/** Sends all texts before the server reads any of them, and resolves once all have a response. */
async function exchange(server: Watched, sockets: readonly Socket[], text: (index: number) => string): Promise<void> {
  const responses = sockets.map((socket) => once(socket, 'data'));
  sockets.forEach((socket, index) => socket.write(text(index)));
  // Blocks the event loop of the server too: on a busy machine the system delivers the bytes a little later.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DELIVERY_MS);
  const requests = (): number => server.order.filter((entry) => entry !== 'announced').length;
  const before = requests();
  while (requests() < before + sockets.length) await new Promise((resolve) => setImmediate(resolve));
  server.respond();
  await Promise.all(responses);
}

t.test(
  'on the native core',
  { skip: noNativeCore || (process.platform !== 'linux' && 'the batches are known on Linux only') },
  async (t) => {
    if (Number.isNaN(pollBatches('uws')())) return t.pass('this version of Node does not count events');

    await t.test('requests that are received together are announced once, the next ones again', async (t) => {
      const server = await serve(t, 'uws');
      const sockets = await connectAll(t, server.port, 3);
      await exchange(server, sockets, () => GET);
      t.strictSame(server.order.splice(0), ['announced', '/later', '/later', '/later']);
      await exchange(server, sockets, () => GET);
      t.strictSame(server.order, ['announced', '/later', '/later', '/later']);
    });

    await t.test(
      'a request that follows a response on its connection is announced, also if both are read together',
      async (t) => {
        const server = await serve(t, 'uws');
        const [socket] = await connectAll(t, server.port, 1);
        await exchange(server, [socket as Socket], () => `GET /now HTTP/1.1\r\nHost: x\r\n\r\n${GET}`);
        t.strictSame(server.order, ['announced', '/now', 'announced', '/later']);
      },
    );

    await t.test(
      'a request that is sent before the response to the last one is not handled before that response',
      async (t) => {
        const server = await serve(t, 'uws');
        const [socket] = await connectAll(t, server.port, 1);
        const closed = once(socket as Socket, 'close');
        socket?.on('error', () => undefined);
        socket?.write(GET + GET);
        while (server.order.length < 2) await new Promise((resolve) => setImmediate(resolve));
        t.strictSame(server.order, ['announced', '/later']);
        await closed;
        t.strictSame(server.order, ['announced', '/later'], 'the core closes the connection');
      },
    );

    await t.test(
      'sockets that the system reports as ready later are announced again, also within one iteration of the event loop',
      async (t) => {
        const server = await serve(t, 'uws');
        const sockets = await connectAll(t, server.port, READY_AT_ONCE + 20);
        await exchange(server, sockets, () => GET);
        const batches = server.order
          .join(' ')
          .split('announced')
          .map((requests) => requests.split('/later').length - 1);
        t.equal(batches.shift(), 0, 'the first request is announced');
        t.ok(batches.length > 1);
        t.ok(Math.max(...batches) <= READY_AT_ONCE, `requests after each announcement: ${batches.join(', ')}`);
        t.equal(
          batches.reduce((sum, requests) => sum + requests),
          sockets.length,
        );
      },
    );

    await t.test('after a response to a request whose body was not read, every request is announced', async (t) => {
      const server = await serve(t, 'uws');
      const sockets = await connectAll(t, server.port, 3);
      const unread = once(sockets[0] as Socket, 'data');
      sockets[0]?.write('POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n');
      await unread;
      sockets[0]?.write('12345');
      server.order.length = 0;
      await exchange(server, sockets, () => GET);
      t.strictSame(server.order, ['announced', '/later', 'announced', '/later', 'announced', '/later']);
    });

    await t.test('every message of a WebSocket is announced, and a request that is received with it', async (t) => {
      const server = await serve(t, 'uws');
      const socket = new WebSocket(`ws://127.0.0.1:${server.port}/socket`);
      t.teardown(() => socket.terminate());
      await once(socket, 'open');
      const sockets = await connectAll(t, server.port, 2);
      server.order.length = 0;
      socket.send('a');
      socket.send('b');
      await exchange(server, sockets, () => GET);
      t.equal(server.order.filter((entry) => entry === 'message').length, 2);
      for (const [index, entry] of server.order.entries())
        if (entry === 'message') t.equal(server.order[index - 1], 'announced');
      t.notSame(server.order.indexOf('announced', server.order.lastIndexOf('message')), -1);
    });
  },
);

t.test('on the core of Node.js every request is announced', async (t) => {
  const server = await serve(t, 'node');
  const sockets = await connectAll(t, server.port, 3);
  await exchange(server, sockets, () => GET);
  t.strictSame(server.order, ['announced', '/later', 'announced', '/later', 'announced', '/later']);
});
