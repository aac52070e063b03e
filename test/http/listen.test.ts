import { createServer as createPlainServer } from 'node:net';
import t, { type Test } from 'tap';
import type { HttpServer } from '../../src/net/core.ts';
import { newServer as serverOfCore, testCore } from '../helpers/core.ts';
import { RawConnection } from '../helpers/raw-http.ts';

function newServer(t: Test, text: string): HttpServer {
  const server = serverOfCore();
  server.app.any('/*', (response) => void response.end(text, true));
  t.teardown(() => server.close());
  return server;
}

const ask = async (port: number): Promise<string> => (await fetch(`http://127.0.0.1:${port}/`)).text();

t.test('a header block may have 16 KiB', async (t) => {
  const port = await newServer(t, 'taken').listen('127.0.0.1', 0);
  const status = async (bytes: number): Promise<number> => {
    const connection = await RawConnection.open(port);
    t.teardown(() => connection.destroy());
    // The core limits only a block whose end has not arrived yet; it reads this part while it serves another request.
    await connection.send(`GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(bytes)}`);
    await ask(port);
    await connection.send('\r\n\r\n');
    return Number((await connection.until((received) => received.includes('\r\n'))).split(' ')[1]);
  };
  t.equal(await status(15_000), 200);
  t.equal(await status(17_000), 431);
});

t.test('port 0 selects a free port', async (t) => {
  const one = await newServer(t, 'one').listen('127.0.0.1', 0);
  const two = await newServer(t, 'two').listen('127.0.0.1', 0);
  t.not(one, two);
  t.equal(await ask(one), 'one');
  t.equal(await ask(two), 'two');
});

const shared = testCore === 'uws' ? false : 'the core of Node.js shares a port through the primary: test/cluster';

t.test(
  'a port is shared with other servers of the same user, which may stop one by one',
  { skip: shared },
  async (t) => {
    const probe = newServer(t, 'probe');
    const port = await probe.listen('127.0.0.1', 0);
    probe.stopListening();
    const one = newServer(t, 'one');
    const two = newServer(t, 'two');
    t.equal(await one.listen('127.0.0.1', port), port);
    t.equal(await two.listen('127.0.0.1', port), port);
    one.stopListening();
    one.stopListening();
    for (let i = 0; i < 8; i++) t.equal(await ask(port), 'two');
    two.stopListening();
    await t.rejects(ask(port));
  },
);

t.test('an address that cannot be used is refused with its name', async (t) => {
  const taken = createPlainServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  t.teardown(() => taken.close());
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await t.rejects(newServer(t, '').listen('127.0.0.1', port), {
    message: new RegExp(`^Cannot listen on 127\\.0\\.0\\.1, port ${port}:`),
  });
  await t.rejects(newServer(t, '').listen('no.such.host.invalid', 0), {
    message: /^Cannot listen on no\.such\.host\.invalid/,
  });
});
