import { createServer as createTcpServer, type AddressInfo as TcpAddress } from 'node:net';
import t from 'tap';
import { isPublicAddress, isPublicHost } from '../../../src/lib/addresses/public-address.ts';
import { publicFetch, publicRequest } from '../../../src/lib/addresses/public-fetch.ts';

await t.test('addresses of private networks are not public', async (t) => {
  for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'])
    t.ok(isPublicAddress(address), address);
  const inner = [
    '127.0.0.1',
    '10.1.1.1',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
  ];
  for (const address of [
    ...inner,
    '::',
    '::1',
    'fe80::1',
    'fd00::1',
    'ff02::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    'x',
  ])
    t.notOk(isPublicAddress(address), address);
  const reserved = [
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '192.88.99.1',
    '2001:db8::1',
    '2001::1',
    '2002:a00:1::',
    '64:ff9b:1::1',
    'fec0::1',
    '100::1',
    '::127.0.0.1',
    '4000::1',
  ];
  for (const address of reserved) t.notOk(isPublicAddress(address), address);
  for (const host of ['localhost', 'a.localhost', 'LOCALHOST.', '127.0.0.1', '[::1]', '[::ffff:10.0.0.1]'])
    t.notOk(isPublicHost(host), host);
  t.ok(isPublicHost('id.example'));
  for (const address of ['http://id.example/', 'https://127.0.0.1/', 'https://localhost/'])
    await t.rejects(publicFetch(address, {}), /public internet/);
});

t.test('a server that switches to another protocol, or closes without an answer, is a failure at once', async (t) => {
  const answers = {
    switched: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    tunnel: 'HTTP/1.1 200 OK\r\n\r\n',
    closed: '',
    half: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
  };
  let answer = '';
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () =>
      answer.includes('101') || answer.endsWith('OK\r\n\r\n') ? socket.write(answer) : socket.end(answer),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as TcpAddress).port}/`;
  const ask = (name: keyof typeof answers, method = 'POST'): Promise<unknown> => {
    answer = answers[name];
    return publicRequest(url, { method, maxBytes: 1_000, allowHttp: true, allowPrivate: true });
  };
  await t.rejects(ask('switched'), /^answered 101: it switched to another protocol/);
  await t.rejects(ask('tunnel', 'CONNECT'), /^answered 200: it switched to another protocol/);
  await t.rejects(ask('closed'), /socket hang up|closed before an answer/);
  await t.rejects(ask('half'), /aborted|cut off/);
});
