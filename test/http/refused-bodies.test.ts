import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { UNADMITTED_BYTES } from '../../src/http/core/body-collector.ts';
import { serveExchanges } from '../helpers/exchanges.ts';
import { startTestServer } from '../helpers/http.ts';
import type { RawResponse, RawConnection } from '../helpers/raw-http.ts';

const MEGABYTE = 1024 * 1024;
/** The most that the core reads at once. */
const READ_BYTES = 512 * 1024;
const HOST = 'Host: localhost\r\n';

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise(setImmediate);
};

/** Sends a whole request before reading anything, as simple clients do. */
async function sendAllThenRead(
  connection: RawConnection,
  head: string,
  size: number,
  chunked: boolean,
): Promise<RawResponse> {
  connection.pause();
  const body = Buffer.alloc(size, 'x');
  await connection.send(`${head}${chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${size}`}\r\n\r\n`);
  if (!chunked) await connection.send(body);
  for (let from = 0; chunked && from < size; from += 64 * 1024) {
    const piece = body.subarray(from, from + 64 * 1024);
    await connection.send(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]));
  }
  if (chunked) await connection.send('0\r\n\r\n');
  connection.resume();
  return connection.answer();
}

const refusals: readonly [request: string, headers: string, status: number][] = [
  ['POST /api/v1/upload', 'Content-Type: multipart/form-data; boundary=b\r\n', 401],
  ['PUT /api/v1/rooms/r1/p2p/state', 'Content-Type: application/octet-stream\r\n', 401],
  ['POST /api/v1/rooms/r1/threads', 'Content-Type: application/json\r\n', 401],
  ['POST /api/v1/rooms/r1/threads', 'Content-Type: application/json\r\nAuthorization: Bearer KEY\r\n', 413],
  ['DELETE /api/v1/threads/t1', '', 401],
  ['POST /api/v1/nowhere', '', 404],
  ['POST /nowhere', '', 404],
];

for (const [request, headers, status] of refusals) {
  t.test(`${status} to ${request} reaches a client that sends everything before it reads`, async (t) => {
    const { connect, key } = await startTestServer(t);
    for (const connection of ['', 'Connection: close\r\n']) {
      for (const chunked of [false, true]) {
        for (const megabytes of connection === '' ? [1.5, 6, 9, 20] : [0.5, 6, 9, 20]) {
          const head = `${request} HTTP/1.1\r\n${HOST}${connection}${headers.replace('KEY', key)}`;
          const answer = await sendAllThenRead(await connect(), head, megabytes * MEGABYTE, chunked);
          t.equal(
            answer.status,
            status,
            `${megabytes} MB, ${chunked ? 'chunked' : 'with its length'}, ${connection.trim()}`,
          );
          t.type((JSON.parse(answer.body) as { error: string }).error, 'string');
        }
      }
    }
  });
}

const hasPython = spawnSync('python3', ['-c', 'import urllib.request']).status === 0;

t.test("Python's urllib gets its refusals", { skip: hasPython ? false : 'there is no python3 here' }, async (t) => {
  const { url } = await startTestServer(t);
  const program = [
    'import sys, urllib.request, urllib.error',
    'for size in (1, 6, 9, 20):',
    '  for chunked in (False, True):',
    '    data = b"x" * (size << 20)',
    '    request = urllib.request.Request(sys.argv[1], data=iter([data]) if chunked else data, method="POST")',
    '    try: urllib.request.urlopen(request)',
    '    except urllib.error.HTTPError as error: print(error.code, error.read().decode().strip()[:10])',
    '    except Exception as error: print(repr(error))',
  ].join('\n');
  const python = spawn('python3', ['-c', program, `${url}/api/v1/upload`], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.strictSame(
    (await text(python.stdout)).trim().split('\n'),
    Array.from({ length: 8 }, () => '401 {"error":"'),
  );
});

t.test('after the response nothing of a body is buffered, and its reader receives nothing more', async (t) => {
  let read: unknown;
  const { open, exchanges } = await serveExchanges(t, async (exchange) => {
    const stream = exchange.head.path === '/stream' ? exchange.streamBody() : null;
    if (stream === null) read = exchange.receiveBody(exchange.head.path === '/sized' ? MEGABYTE * 32 : null);
    await until(() => exchange.bufferedBytes > 0);
    exchange.send(401, [], 'no');
    if (stream !== null) read = stream.read();
  });
  for (const path of ['/stream', '/sized', '/unsized']) {
    exchanges.length = 0;
    const connection = await open();
    await connection.send(`POST ${path} HTTP/1.1\r\n${HOST}Content-Length: ${20 * MEGABYTE}\r\n\r\n`);
    const sent = connection.send(Buffer.alloc(20 * MEGABYTE));
    t.equal((await connection.answer()).status, 401);
    t.equal(exchanges[0]?.bufferedBytes, 0, path);
    await sent;
    t.equal(exchanges[0]?.bufferedBytes, 0, path);
    t.equal(await read, 'aborted', path);
    await connection.ended;
  }
});

t.test('little of a body is read before it is admitted, and all of it afterwards', async (t) => {
  let admitted = false;
  const { open, exchanges } = await serveExchanges(t, async (exchange) => {
    const stream = exchange.head.path === '/stream' ? exchange.streamBody() : null;
    const whole = stream === null ? exchange.receiveBody(exchange.head.path === '/sized' ? MEGABYTE * 32 : null) : null;
    await until(() => admitted);
    exchange.admitBody(MEGABYTE * 32);
    let size = whole === null ? 0 : (await whole).length;
    for (
      let piece = await stream?.read();
      piece !== undefined && typeof piece !== 'string';
      piece = await stream?.read()
    )
      size += piece.length;
    exchange.send(200, [], String(size));
  });
  for (const path of ['/stream', '/sized', '/unsized']) {
    admitted = false;
    exchanges.length = 0;
    const [connection, other] = [await open(), await open()];
    await connection.send(`POST ${path} HTTP/1.1\r\n${HOST}Content-Length: ${20 * MEGABYTE}\r\n\r\n`);
    void connection.send(Buffer.alloc(20 * MEGABYTE));
    await until(() => (exchanges[0]?.bufferedBytes ?? 0) > UNADMITTED_BYTES);
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    t.ok(
      (exchanges[0]?.bufferedBytes ?? Infinity) <= UNADMITTED_BYTES + READ_BYTES,
      `${path}: ${exchanges[0]?.bufferedBytes}`,
    );
    admitted = true;
    t.equal((await connection.answer()).body, String(20 * MEGABYTE), path);
    other.destroy();
  }
});

t.test('a small body that is not admitted waits for its limit', async (t) => {
  const { open } = await serveExchanges(t, async (exchange) => {
    const body = exchange.receiveBody(null);
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    exchange.admitBody(3);
    exchange.send(200, [], String(await body));
  });
  const connection = await open();
  for (const [sent, got] of [
    ['abc', 'abc'],
    ['abcd', 'too_large'],
  ] as const) {
    await connection.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${sent.length}\r\n\r\n${sent}`);
    t.equal((await connection.answer()).body, got);
  }
});

t.test('a connection is closed after its client has sent a refused body to the end', async (t) => {
  const { open, finished } = await serveExchanges(t, (exchange) => exchange.send(413, [], '{"error":"no"}'));
  const connection = await open();
  await connection.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${2 * MEGABYTE}\r\n\r\n`);
  const { headers, body } = await connection.answer();
  t.equal(body.trim(), '{"error":"no"}', 'the response arrives at once');
  t.equal(headers['connection'], 'close');
  t.equal(finished.length, 1);
  await connection.send(Buffer.alloc(2 * MEGABYTE));
  t.equal(await connection.ended, '');
  const endless = await open();
  await endless.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${1000 * MEGABYTE}\r\n\r\n`);
  await endless.answer();
  for (let sent = 0; sent < 100; sent += 4) void endless.send(Buffer.alloc(4 * MEGABYTE));
  await endless.ended;
  t.pass('and when it sends without end');
});

t.test('responses without a body end in the same way', async (t) => {
  const { open } = await serveExchanges(t, (exchange) => exchange.send(204, [['X-A', 'b']], ''));
  for (const method of ['POST', 'HEAD']) {
    const connection = await open();
    await connection.send(`${method} / HTTP/1.1\r\n${HOST}Content-Length: ${2 * MEGABYTE}\r\n\r\n`);
    const { status, headers } = await connection.answer({ toHead: true });
    t.match({ status, headers }, { status: 204, headers: { 'x-a': 'b', connection: 'close' } });
    await connection.send(Buffer.alloc(2 * MEGABYTE));
    t.equal(await connection.ended, '');
  }
});

t.test('a refusal in any language arrives intact', async (t) => {
  const { open } = await serveExchanges(t, (exchange) => exchange.send(400, [], '{"error":"grüße ☃"}'));
  const connection = await open();
  await connection.send(`POST / HTTP/1.1\r\n${HOST}Content-Length: ${2 * MEGABYTE}\r\n\r\n`);
  t.equal((await connection.answer()).body.trim(), '{"error":"grüße ☃"}');
});
