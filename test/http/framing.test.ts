import t from 'tap';
import { testCore } from '../helpers/core.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';

const HOST = 'Host: localhost\r\n';

const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** The ids of all rooms. */
async function rooms({ request }: TestServer): Promise<string[]> {
  const { json } = await request<{ items: { id: string }[] }>('GET', '/rooms');
  return json.items.map(({ id }) => id);
}

const thread = JSON.stringify({ userId: 'ann', body: 'Hello' });

/** The head of a request that creates a thread. */
const create = (server: TestServer, room: string): string =>
  `POST /api/v1/rooms/${room}/threads HTTP/1.1\r\n${HOST}Authorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`;

async function withUser(server: TestServer): Promise<TestServer> {
  await server.request('PUT', '/users/ann', { body: {} });
  return server;
}

t.test('a chunked body is accepted, and its connection is closed afterwards', async (t) => {
  const server = await withUser(await startTestServer(t));
  for (const pieces of [[thread], [thread.slice(0, 5), thread.slice(5)]]) {
    const connection = await server.connect();
    await connection.send(`${create(server, 'good')}Transfer-Encoding: chunked\r\n\r\n${pieces.map(chunk).join('')}`);
    await connection.send('0\r\n\r\n');
    const { status, headers } = await connection.answer();
    t.equal(status, 201);
    t.equal(headers['connection'], 'close');
    t.equal(await connection.ended, '');
  }
  t.strictSame(await rooms(server), ['good']);
});

t.test('a chunked request with a trailer writes nothing', async (t) => {
  const server = await withUser(await startTestServer(t));
  const announced = await server.connect();
  await announced.send(`${create(server, 'announced')}Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n`);
  await announced.send(`${chunk(thread)}0\r\n`);
  const { status, headers, body } = await announced.answer();
  t.match(
    { status, headers, body },
    { status: 400, headers: { 'x-error-code': 'invalid_request', connection: 'close' }, body: /^{"error":"Trailer / },
  );
  for (const [name, from] of [
    ['one segment', 0],
    ['two segments', 60],
  ] as const) {
    const unannounced = await server.connect();
    const request = `${create(server, 'unannounced')}Transfer-Encoding: chunked\r\n\r\n${chunk(thread)}0\r\nX-Sum: 1\r\n\r\n`;
    if (from > 0) await unannounced.send(request.slice(0, from));
    await unannounced.send(request.slice(from));
    t.match(
      await unannounced.ended,
      testCore === 'uws' ? /^HTTP\/1\.1 505 / : /^HTTP\/1\.1 400 /,
      `${name}: answered by the core`,
    );
  }
  t.strictSame(await rooms(server), []);
});

t.test('nothing that follows a chunked body is handled as a request', async (t) => {
  const server = await withUser(await startTestServer(t));
  const smuggled = `${create(server, 'smuggled')}Content-Length: ${thread.length}\r\n\r\n${thread}`;
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const auth = `Authorization: Bearer ${server.key}\r\n`;
  const firsts: Record<string, string> = {
    'a page': `GET /livez HTTP/1.1\r\n${HOST}${chunked}\r\n`,
    'a list': `GET /api/v1/rooms HTTP/1.1\r\n${HOST}${auth}${chunked}\r\n`,
    'a refusal': `POST /api/v1/rooms/r1/threads HTTP/1.1\r\n${HOST}${chunked}\r\n`,
    'a route without a body': `DELETE /api/v1/threads/t1 HTTP/1.1\r\n${HOST}${auth}${chunked}\r\n`,
    'an unknown route': `POST /nowhere HTTP/1.1\r\n${HOST}${chunked}\r\n`,
    'a preflight': `OPTIONS /api/v1/upload HTTP/1.1\r\n${HOST}${chunked}\r\n`,
    'a file': `GET /files/e/f HTTP/1.1\r\n${HOST}${chunked}\r\n`,
  };
  for (const [name, first] of Object.entries(firsts)) {
    for (const end of ['0\r\n\r\n', '0\r\nXX']) {
      for (const segments of [1, 2, 3]) {
        const connection = await server.connect();
        const whole = `${first}${end}${smuggled}`;
        if (segments === 1) await connection.send(whole);
        else {
          await connection.send(segments === 2 ? `${first}${end}` : first);
          if (segments === 3) await connection.send(end);
          await connection.send(smuggled);
        }
        const received = await connection.ended;
        t.notMatch(received, / 201 /, `${name}, ${JSON.stringify(end)}, ${segments} segments`);
        t.ok(received.split('HTTP/1.1 ').length <= 2, 'one response at most');
      }
    }
  }
  t.strictSame(await rooms(server), []);
});

t.test('GET and HEAD accept neither a chunked nor a large body', async (t) => {
  const { connect } = await startTestServer(t);
  for (const path of ['/livez', '/api/v1/rooms', '/files/e/f']) {
    const chunked = await connect();
    await chunked.send(`GET ${path} HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${chunk('x')}0\r\n\r\n`);
    t.match(await chunked.answer(), {
      status: 400,
      headers: { 'x-error-code': 'invalid_request', connection: 'close' },
      body: /^{"error":"A GET request must have no chunked body"}/,
    });
    t.equal(await chunked.ended, '');
    const large = await connect();
    await large.send(`HEAD ${path} HTTP/1.1\r\n${HOST}Content-Length: 100000\r\n\r\n`);
    t.equal((await large.answer({ toHead: true })).status, 413);
  }
  const small = await connect();
  await small.send(`GET /livez HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n{}GET /livez HTTP/1.1\r\n${HOST}\r\n`);
  t.equal((await small.answer()).status, 200);
  t.equal((await small.answer()).status, 200, 'a small body is skipped');
});

t.test('requests that the core refuses before JavaScript runs', async (t) => {
  const { connect } = await startTestServer(t);
  for (const [request, status] of [
    ['GET /livez HTTP/1.0\r\n\r\n', 505],
    [`GET /livez HTTP/1.0\r\n${HOST}\r\n`, 505],
    ['GET /livez HTTP/1.1\r\nAccept: */*\r\n\r\n', 400],
  ] as const) {
    const connection = await connect();
    await connection.send(request);
    const page = testCore === 'uws' ? '<h1>' : '\r\n\r\n\\{"error":';
    t.match(
      await connection.ended,
      new RegExp(`^HTTP/1\\.1 ${status} [^]*${page}`),
      'the native core has a page of its own, which docs/deploy mentions',
    );
  }
});
