import type { Test } from 'tap';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { CoreKind } from '../../../src/net/core.ts';
import { until } from '../../helpers/cluster.ts';
import { type CoreServer, serveCore } from './server.ts';

async function connected(t: Test, { port }: CoreServer): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, ['other', 'collab.v1']);
  t.teardown(() => socket.terminate());
  await once(socket, 'open');
  return socket;
}

const message = async (socket: WebSocket): Promise<string> => String((await once(socket, 'message'))[0]);

/** What every core does with WebSockets. */
export async function socketContract(t: Test, core: CoreKind): Promise<void> {
  await t.test('an upgrade answers with the chosen protocol and headers, without compression', async (t) => {
    const server = await serveCore(t, core);
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws`, ['other', 'collab.v1']);
    t.teardown(() => socket.terminate());
    const [[response]] = (await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])) as [
      [{ headers: Record<string, string> }],
      unknown,
    ];
    t.equal(socket.protocol, 'collab.v1');
    t.equal(socket.extensions, '');
    t.equal(response.headers['x-upgraded'], 'yes');
    t.equal(server.sockets[0]?.getUserData().name, 'ann');
  });

  await t.test('frames are echoed as text or bytes, in order', async (t) => {
    const socket = await connected(t, await serveCore(t, core));
    const received: unknown[] = [];
    socket.on('message', (data: Buffer, isBinary: boolean) => received.push([data.toString(), isBinary]));
    socket.send('grüße ☃');
    socket.send(Buffer.from('bytes'));
    await until(() => received.length === 2);
    t.strictSame(received, [
      ['grüße ☃', false],
      ['bytes', true],
    ]);
  });

  await t.test('a publication reaches every socket of the topic, except its sender', async (t) => {
    const server = await serveCore(t, core);
    const [from, to] = [await connected(t, server), await connected(t, server)];
    const news = message(to);
    from.send('publish');
    t.equal(await news, 'news');
    const echo = message(from);
    from.send('mine');
    t.equal(await echo, 'mine', 'and not the news');
    const all = Promise.all([message(from), message(to)]);
    t.ok(server.app.publish('all', 'for all', false, false));
    t.strictSame(await all, ['for all', 'for all']);
    t.notOk(server.app.publish('none', 'for nobody', false, false));
  });

  await t.test('the server closes with a code and a reason, and its handler is called at once', async (t) => {
    const server = await serveCore(t, core);
    const socket = await connected(t, server);
    const closed = once(socket, 'close');
    socket.send('end');
    const [code, reason] = (await closed) as [number, Buffer];
    t.strictSame([code, String(reason), server.closed], [4400, 'bad_message', [4400]]);
    const other = await connected(t, server);
    other.close(1001);
    await until(() => server.closed.length === 2);
    t.equal(server.closed[1], 1001, 'a code of the client');
    (await connected(t, server)).terminate();
    await until(() => server.closed.length === 3);
    t.equal(server.closed[2], 1006, 'no close frame');
  });

  await t.test('a frame over the limit ends the socket', async (t) => {
    const socket = await connected(t, await serveCore(t, core));
    const echo = message(socket);
    socket.send('x'.repeat(1024));
    t.equal((await echo).length, 1024);
    const closed = once(socket, 'close');
    socket.send('x'.repeat(1025));
    t.match((await closed)[0], core === 'uws' ? 1006 : 1009);
  });

  await t.test('what waits for a slow client is counted, and its end is reported', async (t) => {
    const server = await serveCore(t, core);
    const client = await connected(t, server);
    const [socket] = server.sockets;
    if (socket === undefined) return;
    client.pause();
    let sent = 0;
    for (; sent < 32 && socket.getBufferedAmount() === 0; sent++) socket.send(Buffer.alloc(1024 * 1024), true, false);
    t.ok(socket.getBufferedAmount() > 0);
    let received = 0;
    client.on('message', (data: Buffer) => (received += data.length));
    client.resume();
    await until(() => received === sent * 1024 * 1024 && server.drained > 0);
    t.equal(socket.getBufferedAmount(), 0);
  });
}
