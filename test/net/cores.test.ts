import t from 'tap';
import { httpContract } from '../conformance/core/http.ts';
import { socketContract } from '../conformance/core/sockets.ts';
import { createNodeServer } from '../../src/net/node/server.ts';
import { noNativeCore } from '../helpers/core.ts';
import { RawConnection } from '../helpers/raw-http.ts';

for (const core of ['uws', 'node'] as const) {
  t.test(`the core ${core}`, { skip: core === 'uws' ? noNativeCore : false }, async (t) => {
    await httpContract(t, core);
    await socketContract(t, core);
  });
}

t.test('the core of Node.js disconnects a client that ignores a close frame', async (t) => {
  const server = createNodeServer(20);
  server.app.ws('/ws', { open: (socket) => socket.end(4401, 'invalid_token') });
  const connection = await RawConnection.open(await server.listen('127.0.0.1', 0));
  t.teardown(() => {
    connection.destroy();
    server.close();
  });
  const key = Buffer.alloc(16).toString('base64');
  await connection.send(
    `GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  t.match(await connection.ended, /^HTTP\/1\.1 101 [^]*invalid_token$/);
});
