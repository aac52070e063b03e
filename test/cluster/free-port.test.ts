import { createServer, type AddressInfo } from 'node:net';
import t from 'tap';
import { findFreePort } from '../../src/cluster/free-port.ts';

async function occupy(): Promise<{ port: number; leave: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    port: (server.address() as AddressInfo).port,
    leave: () => new Promise((done) => server.close(() => done())),
  };
}

t.test('port 0 returns a free port that can be used', async (t) => {
  const port = await findFreePort('127.0.0.1', 0, 0);
  t.ok(port > 0);
  t.equal(await findFreePort('127.0.0.1', port, 0), port);
});

t.test('port 0 returns none that the system could give to a client before the workers listen', async (t) => {
  const ports = await Promise.all(Array.from({ length: 200 }, () => findFreePort('127.0.0.1', 0, 0)));
  t.strictSame(
    ports.filter((port) => port < 20_000 || port >= 32_768),
    [],
  );
});

t.test('a port in use is refused by number, with advice', async (t) => {
  const { port, leave } = await occupy();
  await t.rejects(findFreePort('127.0.0.1', port, 0), {
    name: 'StartError',
    exitCode: 1,
    message: `Port ${port} on 127.0.0.1 is in use by another program. Stop that program, or choose another port with --port.`,
  });
  await leave();
});

t.test('a port that becomes free in time is returned', async (t) => {
  const { port, leave } = await occupy();
  const found = findFreePort('127.0.0.1', port, 10_000);
  await leave();
  t.equal(await found, port);
});

t.test('a host that is not an address of this machine is a configuration error', async (t) => {
  await t.rejects(findFreePort('192.0.2.1', 0, 0), {
    name: 'StartError',
    exitCode: 2,
    message: /^host 192\.0\.2\.1 is not an address of this machine/,
  });
});
