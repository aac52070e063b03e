import t, { type Test } from 'tap';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import dns, { type LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import type { Socket } from 'node:net';
import { pluginHttp } from '../../src/plugins/services/plugin-http.ts';
import { startReceiver } from '../helpers/receiver.ts';

const http = pluginHttp(false, () => 0);

/**
 * Answers every lookup of a name with these addresses in turn, the last one again and again. Returns the number of
 * lookups.
 */
function answerLookups(t: Pick<Test, 'teardown'>, ...answers: readonly LookupAddress[][]): () => number {
  const original = dns.lookup;
  let lookups = 0;
  const fake = (
    _name: string,
    _options: object,
    callback: (error: Error | null, found: LookupAddress[]) => void,
  ): void => {
    const answer = answers[Math.min(lookups++, answers.length - 1)] ?? [];
    setImmediate(() => callback(null, answer));
  };
  Object.assign(dns, { lookup: fake });
  syncBuiltinESMExports();
  t.teardown(() => {
    Object.assign(dns, { lookup: original });
    syncBuiltinESMExports();
  });
  return () => lookups;
}

t.test('a plugin cannot reach a private address, however it is spelled', async (t) => {
  const { url, received } = await startReceiver(t);
  const { port } = new URL(url);
  const loopback = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '0',
    '0.0.0.0',
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'a.localhost',
  ];
  const loopback6 = [
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ];
  const others = [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.254',
    '192.168.0.1',
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '100.64.0.1',
    '[fe80::1]',
    '[fd00::1]',
    '[::ffff:169.254.169.254]',
    '[::ffff:10.0.0.1]',
  ];
  for (const host of [...loopback, ...loopback6, ...others])
    await t.rejects(http.request(`http://${host}:${port}/`, { timeoutMs: 1_000 }), /private or local/, host);
  for (const address of ['file:///etc/passwd', 'ftp://id.example/', 'http:', '', 'id.example', 'http://127.0.0.1 /'])
    await t.rejects(http.request(address), /Not an http or https URL/, address);
  t.equal(received.length, 0, 'no request was sent');
});

t.test(
  'a name that resolves to a private address is refused, even if only one of its addresses is private',
  async (t) => {
    const { url, received } = await startReceiver(t);
    const { port } = new URL(url);
    answerLookups(
      t,
      [{ address: '127.0.0.1', family: 4 }],
      [
        { address: '8.8.8.8', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ],
      [{ address: '::ffff:127.0.0.1', family: 6 }],
      [],
    );
    for (const what of ['one address', 'a public and a private one', 'an IPv4 address in IPv6', 'none'])
      await t.rejects(
        http.request(`http://id.example:${port}/`, { timeoutMs: 1_000 }),
        /resolves to a private or local address \("allowPrivate": true/,
        what,
      );
    t.equal(received.length, 0, 'no request was sent');
  },
);

t.test('each request looks a name up once, and checks what that lookup answers', async (t) => {
  const { url, received } = await startReceiver(t);
  const { port } = new URL(url);
  const lookups = answerLookups(t, [{ address: '240.0.0.1', family: 4 }], [{ address: '127.0.0.1', family: 4 }]);
  for (const count of [1, 2]) {
    await t.rejects(
      http.request(`http://id.example:${port}/`, { timeoutMs: 1_000 }),
      /resolves to a private or local address/,
    );
    t.equal(lookups(), count, 'no second lookup could give another address to connect to');
  }
  t.equal(received.length, 0, 'no request was sent');
});

t.test('a redirect to a private address is returned, not followed', async (t) => {
  const inner = await startReceiver(t);
  const outer = await startReceiver(t, { status: 302, headers: { location: inner.url } });
  const { status } = await pluginHttp(true, () => 0).request(outer.url);
  t.equal(status, 302);
  t.equal(inner.received.length, 0);
});

t.test('requests to one server share a connection, and one that the server has closed is replaced', async (t) => {
  const ports = new Set<number | undefined>();
  let closing = false;
  const receiver = await startReceiver(t, (response) => {
    ports.add(response.socket?.remotePort);
    if (closing) response.socket?.destroy();
    else response.end('ok');
    closing = false;
  });
  const own = pluginHttp(true, () => 0);
  for (let n = 0; n < 3; n++) await own.request(receiver.url);
  t.equal(ports.size, 1);
  closing = true;
  const { status } = await own.request(receiver.url, { method: 'POST', body: 'text' });
  t.equal(status, 200);
  t.equal(ports.size, 2, 'a new connection');
  t.equal(String(receiver.received.at(-1)?.body), 'text', 'with the same body');
  t.equal(receiver.received.length, 5);
});

t.test('a connection of a plugin that may reach private addresses is not used for one that may not', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = new URL(receiver.url);
  answerLookups(t, [{ address: '127.0.0.1', family: 4 }]);
  const url = `http://id.example:${port}/`;
  t.match(await pluginHttp(true, () => 0).request(receiver.url), { status: 200 });
  await t.rejects(http.request(receiver.url), /private or local/);
  await t.rejects(http.request(url), /resolves to a private or local address/);
  t.equal(receiver.received.length, 1);
});

t.test(
  'a request connects to the address that was checked, although the next lookup would answer another one',
  async (t) => {
    const { url, received } = await startReceiver(t);
    const { port } = new URL(url);
    const lookups = answerLookups(t, [{ address: '93.184.216.34', family: 4 }], [{ address: '127.0.0.1', family: 4 }]);
    const addresses: string[] = [];
    // The connection is ended as soon as its address is known: nothing is sent to the internet.
    const onSocket = (message: unknown): void => {
      const { socket } = message as { socket: Socket };
      socket.on('lookup', (error, address) => {
        if (error !== null) return;
        addresses.push(address);
        socket.destroy(new Error('stopped by the test'));
      });
    };
    subscribe('net.client.socket', onSocket);
    t.teardown(() => unsubscribe('net.client.socket', onSocket));
    await t.rejects(http.request(`http://rebinding.example:${port}/`, { timeoutMs: 1_000 }), /stopped by the test/);
    t.strictSame(addresses, ['93.184.216.34']);
    t.equal(lookups(), 1);
    await t.rejects(
      http.request(`http://rebinding.example:${port}/`, { timeoutMs: 1_000 }),
      /resolves to a private or local address/,
    );
    t.equal(received.length, 0);
  },
);
