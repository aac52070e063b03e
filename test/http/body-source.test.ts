import t from 'tap';
import type { BodySource } from '../../src/http/core/body-source.ts';
import { until } from '../helpers/cluster.ts';
import { serveExchanges } from '../helpers/exchanges.ts';

const HOST = 'Host: localhost\r\n';
const MEGABYTE = 1024 * 1024;

/** A source whose bytes encode their offset, and that records how far it was read. */
function source(size: number): BodySource & { readTo: number } {
  return {
    size,
    readTo: 0,
    async read(offset, length) {
      this.readTo = Math.max(this.readTo, offset + length);
      return Buffer.from(Uint8Array.from({ length }, (_, i) => 33 + ((offset + i) % 90)));
    },
  };
}

const expected = (size: number): string =>
  Array.from({ length: 90 }, (_, i) => String.fromCharCode(33 + i))
    .join('')
    .repeat(Math.ceil(size / 90))
    .slice(0, size);

t.test('a source is sent whole, in parts, and the connection stays open', async (t) => {
  const size = 3 * MEGABYTE + 7;
  const { open } = await serveExchanges(t, (exchange) => exchange.sendSource(200, [['X-It', 'is']], source(size)));
  const connection = await open();
  for (let i = 0; i < 2; i++) {
    await connection.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    const { status, headers, body } = await connection.answer();
    t.equal(status, 200);
    t.equal(headers['x-it'], 'is');
    t.equal(headers['content-length'], String(size));
    t.ok(body === expected(size), 'every byte');
  }
  await connection.send(`HEAD / HTTP/1.1\r\n${HOST}\r\n`);
  t.equal((await connection.answer({ toHead: true })).headers['content-length'], String(size));
});

t.test('a source is read no faster than its client takes it', async (t) => {
  const sources: ReturnType<typeof source>[] = [];
  const { open } = await serveExchanges(t, (exchange) => {
    const large = source(64 * MEGABYTE);
    sources.push(large);
    return exchange.sendSource(200, [], large);
  });
  const slow = await Promise.all(Array.from({ length: 4 }, open));
  for (const connection of slow) connection.pause();
  for (const connection of slow) await connection.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  let before = -1;
  const readTo = (): number => sources.reduce((sum, { readTo }) => sum + readTo, 0);
  await until(() => {
    const now = readTo();
    const still = sources.length === 4 && now > 0 && now === before;
    before = now;
    return still;
  });
  t.ok(readTo() < 4 * 16 * MEGABYTE, `${readTo()} bytes were read, most of them into buffers of the system`);
});

t.test('a client that goes away ends the transfer, and so does a source that fails', async (t) => {
  const failures: unknown[] = [];
  const { open, finished } = await serveExchanges(t, async (exchange) => {
    const good = source(32 * MEGABYTE);
    const failing: BodySource = {
      size: good.size,
      read: (offset, length) =>
        offset > MEGABYTE && exchange.head.path === '/bad'
          ? Promise.reject(new Error('gone'))
          : good.read(offset, length),
    };
    await exchange.sendSource(200, [], failing).catch((error: unknown) => failures.push(error));
  });
  const leaving = await open();
  await leaving.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
  leaving.destroy();
  await until(() => finished.length === 1);
  t.same(failures, []);
  const cut = await open();
  await cut.send(`GET /bad HTTP/1.1\r\n${HOST}\r\n`);
  await cut.ended;
  t.match(failures, [{ message: 'gone' }]);
});

t.test('a body stream pauses the connection while it is not read', async (t) => {
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  let read = 0;
  const { open } = await serveExchanges(t, async (exchange) => {
    if (exchange.head.method === 'GET') return exchange.send(200, [], 'pong');
    const stream = exchange.streamBody();
    await passed;
    for (let piece = await stream.read(); typeof piece !== 'string'; piece = await stream.read()) read += piece.length;
    exchange.send(200, [], String(read));
  });
  const connection = await open();
  const size = 24 * MEGABYTE;
  await connection.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${size}\r\n\r\n`);
  let sent = false;
  const sending = connection.send(Buffer.alloc(size)).then(() => (sent = true));
  const other = await open();
  for (let i = 0; i < 50; i++) {
    await other.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await other.answer();
  }
  t.notOk(sent, 'the body cannot be sent completely, while others are served');
  pass();
  await sending;
  t.equal((await connection.answer()).body, String(size));
});

t.test('an empty stream ends at once', async (t) => {
  const { open } = await serveExchanges(t, async (exchange) =>
    exchange.send(200, [], String(await exchange.streamBody().read())),
  );
  const connection = await open();
  await connection.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`);
  t.equal((await connection.answer()).body, 'end');
  await connection.send(`POST / HTTP/1.1\r\n${HOST}\r\n`);
  t.equal((await connection.answer()).body, 'end');
});

t.test('a small rest of a stream is skipped, and a large one closes the connection', async (t) => {
  const { open } = await serveExchanges(t, async (exchange) => {
    const stream = exchange.streamBody();
    await stream.read();
    exchange.send(413, [], 'no');
  });
  const little = await open();
  const size = MEGABYTE;
  await little.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${size}\r\n\r\n`);
  await little.send(Buffer.alloc(1000));
  t.equal((await little.answer()).status, 413);
  await little.send(Buffer.alloc(size - 1000));
  await little.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\n\r\nx`);
  t.equal((await little.answer()).status, 413, 'the connection stays open');
  const much = await open();
  await much.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${1000 * MEGABYTE}\r\n\r\nx`);
  const { status, headers, body } = await much.answer();
  t.equal(status, 413);
  t.equal(body.trim(), 'no');
  t.equal(headers['connection'], 'close');
});
