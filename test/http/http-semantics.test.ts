import { type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

interface RawResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly body: string;
}
interface Failure {
  readonly error: string;
}
interface Created {
  readonly thread: { readonly id: string };
}

/** Creates a thread whose list of comments is large enough to be compressed, and returns the path of the list. */
async function seed({ request }: TestServer, comments = 5): Promise<string> {
  await request('PUT', '/users/ann', { body: { name: 'Ann' } });
  const { json } = await request<Created>('POST', '/rooms/r1/threads', { body: { userId: 'ann', body: 'Hello' } });
  for (let i = 0; i < comments; i++)
    await request('POST', `/threads/${json.thread.id}/comments`, {
      body: { userId: 'ann', body: `${i} `.repeat(100) },
    });
  return `/threads/${json.thread.id}/comments`;
}

/** Sends a request without fetch, which would add its own Accept-Encoding and decode the body. */
async function raw(
  server: TestServer,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<RawResponse> {
  const length = body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${server.url}/api/v1${path}`, {
      method,
      agent: false,
      headers: { Authorization: `Bearer ${server.key}`, ...headers, ...length },
    });
    request.once('error', reject);
    request.once('response', (answer) => {
      buffer(answer).then(
        (bytes) => resolve({ status: answer.statusCode, headers: answer.headers, bytes, body: bytes.toString() }),
        reject,
      );
    });
    request.end(body);
  });
}

t.test('JSON of 1 KiB and more is compressed for clients that accept gzip', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  const plain = await raw(server, 'GET', list);
  t.equal(plain.headers['content-encoding'], undefined);
  t.ok(plain.body.length > 1024);
  t.equal(plain.headers['vary'], 'Accept-Encoding');
  for (const accepted of ['gzip', 'gzip, deflate, br', 'br;q=1.0, GZIP;q=0.5', '*']) {
    const { status, headers, bytes } = await raw(server, 'GET', list, { 'Accept-Encoding': accepted });
    t.equal(status, 200);
    t.equal(headers['content-encoding'], 'gzip', accepted);
    t.equal(headers['vary'], 'Accept-Encoding');
    t.ok(bytes.length < plain.bytes.length / 2);
    t.equal(gunzipSync(bytes).toString(), plain.body);
  }
  for (const accepted of ['identity', 'br', 'gzip;q=0', '*;q=0', 'gzip;q=0.0, *', 'xgzip', '']) {
    t.equal(
      (await raw(server, 'GET', list, { 'Accept-Encoding': accepted })).headers['content-encoding'],
      undefined,
      accepted,
    );
  }
  const thread = await raw(server, 'GET', list.replace('/comments', ''), { 'Accept-Encoding': 'gzip' });
  t.equal(thread.headers['content-encoding'], 'gzip', 'other resources too');
  t.equal(
    (await raw(server, 'GET', '/rooms', { 'Accept-Encoding': 'gzip' })).headers['content-encoding'],
    undefined,
    'small bodies are not',
  );
  const long = JSON.stringify({ userId: 'ann', body: 'x'.repeat(2000) });
  t.match(await raw(server, 'POST', list, {}, long), { status: 201, body: /^{"comment"/ });
  t.match((await raw(server, 'POST', list, { 'Accept-Encoding': 'gzip' }, long)).headers, {
    'content-encoding': 'gzip',
  });
});

t.test('a list that has changed is compressed again', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  const read = async (): Promise<string> =>
    gunzipSync((await raw(server, 'GET', list, { 'Accept-Encoding': 'gzip' })).bytes).toString();
  const first = await read();
  t.equal(await read(), first);
  await server.request('POST', list, { body: { userId: 'ann', body: 'news' } });
  t.match(await read(), /"body":"news"/);
});

t.test('lists that only events change have a weak ETag, and get 304 while it is current', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  const tagOf = async (path: string, headers = {}): Promise<string> =>
    (await server.request('GET', path, { headers })).headers.get('etag') ?? '';
  for (const path of [list, '/rooms/r1/threads', `${list}?limit=2`, `${list}?updatedSince=2025-01-01`]) {
    const tag = await tagOf(path);
    t.match(tag, new RegExp(`^W/"${epochOf(server.ctx.store, server.environment)}-\\d+-[0-9a-z]+"$`), path);
    for (const given of [tag, tag.slice(2), `"other", ${tag}`]) {
      const again = await raw(server, 'GET', path, { 'If-None-Match': given });
      t.equal(again.status, 304, given);
      t.equal(again.body, '');
      t.equal(again.headers['content-length'], undefined);
      t.equal(again.headers['etag'], tag);
      t.equal(again.headers['cache-control'], 'private, no-cache');
      t.equal(again.headers['vary'], 'Accept-Encoding');
      t.type(again.headers['x-request-id'], 'string');
    }
    t.equal((await raw(server, 'HEAD', path, { 'If-None-Match': tag })).status, 304);
    t.equal((await raw(server, 'GET', path, { 'If-None-Match': '"other"' })).status, 200);
    await server.request('POST', list, { body: { userId: 'ann', body: 'news' } });
    t.equal((await raw(server, 'GET', path, { 'If-None-Match': tag })).status, 200, 'an event has been committed');
  }
  const tags = await Promise.all(
    [list, `${list}?limit=2`, `${list}?limit=3`, '/rooms/r1/threads'].map((path) => tagOf(path)),
  );
  t.equal(new Set(tags).size, tags.length, 'each URL has its own');
});

t.test('the list of rooms, which also changes without events, has an ETag of its content', async (t) => {
  const server = await startTestServer(t);
  await seed(server, 0);
  const read = (tag: string) => raw(server, 'GET', '/rooms', { 'If-None-Match': tag });
  const tag = (await read('')).headers.etag ?? '';
  t.match(tag, /^W\/"[\w-]+"$/);
  const again = await read(tag);
  t.strictSame(
    [again.status, again.body, again.headers.etag, again.headers['cache-control']],
    [304, '', tag, 'private, no-cache'],
  );
  t.equal((await server.request('PATCH', '/rooms/r1', { body: { metadata: { project: 'a' } } })).status, 200);
  const changed = await read(tag);
  t.equal(changed.status, 200);
  t.match(changed.body, /"project":"a"/);
});

t.test('an ETag depends on the reader, the environment and its settings', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  const ask = (key: string, tag = '') =>
    server.request('GET', list, { key, headers: tag === '' ? {} : { 'If-None-Match': tag } });
  const tag = (await ask(server.key)).headers.get('etag') ?? '';
  t.equal((await ask(await server.newKey({ scope: 'read' }), tag)).status, 304, 'a key that reaches the same rooms');
  t.equal((await ask(await server.newKey({ rooms: 'r*' }), tag)).status, 200, 'a key that reaches fewer rooms');
  t.equal(
    (await server.request('GET', list, { key: null, headers: { 'If-None-Match': tag } })).status,
    401,
    'the credential is checked first',
  );
  (server.ctx.clock as { advance?: (ms: number) => void }).advance?.(1);
  await updateEnvironment(server.ctx, server.environment.id, { settings: { limits: { listHardCap: 2 } } });
  const shorter = await ask(server.key, tag);
  t.equal(shorter.status, 200, 'settings determine the content of a list');
  t.equal((shorter.json as { items: unknown[] }).items.length, 2);
});

t.test('a 304 reads the position, and not the list', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  const tag = (await server.request('GET', list)).headers.get('etag') ?? '';
  const { store } = server.ctx;
  const calls: string[] = [];
  for (const name of ['get', 'range', 'cached', 'lastSeq'] as const) {
    t.intercept(store, name, {
      value: counted(name, store[name].bind(store) as (...args: readonly unknown[]) => unknown),
    });
  }
  function counted(name: string, call: (...args: readonly unknown[]) => unknown) {
    return (...args: readonly unknown[]): unknown => {
      calls.push(name);
      return call(...args);
    };
  }
  t.equal((await server.request('GET', list, { headers: { 'If-None-Match': tag } })).status, 304);
  t.strictSame([...new Set(calls)], ['cached', 'lastSeq'], 'the cached key, and the position');
  t.equal(calls.filter((name) => name === 'cached').length, 1);
});

t.test('resources that do not exist or change by themselves have no ETag', async (t) => {
  const server = await startTestServer(t);
  await seed(server);
  for (const path of ['/users', '/users/ann', '/events', '/nowhere'])
    t.equal((await server.request('GET', path)).headers.get('etag'), null, path);
  t.equal((await server.request('GET', '/threads/none/comments', { headers: { 'If-None-Match': '*' } })).status, 404);
});

t.test('HEAD has the headers of GET and no body', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  for (const path of [list, '/rooms', '/rooms/r1', '/threads/none', '/nowhere']) {
    for (const coding of ['identity', 'gzip']) {
      const shown = { 'Accept-Encoding': coding, 'X-Request-Id': 'one' };
      const get = await raw(server, 'GET', path, shown);
      const head = await raw(server, 'HEAD', path, shown);
      t.equal(head.status, get.status);
      // A second may have begun in between.
      t.strictSame({ ...head.headers, date: get.headers['date'] }, get.headers, path);
      t.equal(head.body, '');
    }
  }
});

t.test('every answer has a request id, nosniff and no HSTS', async (t) => {
  const server = await startTestServer(t);
  for (const path of ['/rooms', '/nowhere', '/openapi.json', '//livez', '//readyz', '//nowhere']) {
    const { headers } = await server.request('GET', path);
    t.match(headers.get('x-request-id'), /^[A-Za-z0-9._-]{1,64}$/, path);
    t.equal(headers.get('x-content-type-options'), 'nosniff', path);
    t.equal(headers.get('strict-transport-security'), null, 'TLS is handled by the proxy');
  }
  for (const [given, kept] of [
    ['job-1.a_B', true],
    ['x'.repeat(64), true],
    ['x'.repeat(65), false],
    ['a b', false],
    ['a"b', false],
  ] as const) {
    const { headers } = await server.request('GET', '/rooms', { headers: { 'X-Request-Id': given } });
    t.equal(headers.get('x-request-id') === given, kept, given);
  }
});

t.test('a trailing slash makes no difference', async (t) => {
  const server = await startTestServer(t);
  const list = await seed(server);
  t.equal((await server.request('GET', `${list}/`)).text, (await server.request('GET', list)).text);
});

t.test('pages are sent with restrictive headers', async (t) => {
  const paths = ['/', '/demo/demo.js', '/demo/demo.css', '/demo/icon.svg'];
  const files = Object.fromEntries(
    [...paths, '/demo/page'].map((path) => [path, { type: 'text/plain', text: '', framed: path === '/demo/page' }]),
  );
  const demo = { files, session: () => Promise.resolve('{}'), threads: () => Promise.resolve('{}') };
  const server = await startTestServer(t, { demo, flags: { demo: 'true' } });
  t.match(
    (await server.request('GET', '//demo/page', { key: null })).headers.get('content-security-policy'),
    /default-src 'self'.*frame-ancestors 'self'/,
  );
  for (const path of paths) {
    const { headers } = await server.request('GET', `/${path}`, { key: null });
    t.match(headers.get('content-security-policy'), /default-src 'self'.*frame-ancestors 'none'/, path);
    t.equal(headers.get('x-content-type-options'), 'nosniff');
    t.equal(headers.get('referrer-policy'), 'no-referrer');
    t.equal(headers.get('cross-origin-resource-policy'), 'same-origin');
    t.equal(headers.get('strict-transport-security'), null);
  }
});

t.test('the limits of the environment apply', async (t) => {
  const server = await startTestServer(t);
  const path = (await seed(server, 1)).replace('/comments', '');
  const limits = {
    bodyLength: 5,
    mentions: 1,
    idLength: 4,
    roomIdLength: 4,
    selectorLength: 3,
    metadataKeys: 1,
    metadataKeyLength: 3,
    metadataValueLength: 3,
    jsonBodyBytes: 1024,
    commentsPerThread: 3,
  };
  await updateEnvironment(server.ctx, server.environment.id, { settings: { limits } });
  const comment = { userId: 'ann', body: 'Hi' };
  const position = { x: 0, y: 0, selector: 'main' };
  const cases: [method: string, path: string, body: object, status: number, error: RegExp][] = [
    ['POST', `${path}/comments`, { ...comment, body: 'Hello!' }, 400, /^body must be 1 to 5 characters(?:, not .+)?$/],
    [
      'POST',
      `${path}/comments`,
      { ...comment, mentions: ['a', 'b'] },
      400,
      /^mentions must hold at most 1 user ids(?:, not .+)?$/,
    ],
    [
      'POST',
      `${path}/comments`,
      { ...comment, metadata: { a: 1, b: 2 } },
      400,
      /^metadata must hold at most 1 keys(?:, not .+)?$/,
    ],
    [
      'POST',
      `${path}/comments`,
      { ...comment, metadata: { abcd: 1 } },
      400,
      /^Keys of metadata must be 1 to 3 characters(?:, not .+)?$/,
    ],
    [
      'POST',
      `${path}/comments`,
      { ...comment, metadata: { a: 'abcd' } },
      400,
      /^metadata\.a must be at most 3 characters(?:, not .+)?$/,
    ],
    [
      'POST',
      `${path}/comments`,
      { ...comment, ignored: 'x'.repeat(1024) },
      413,
      /^The body must be at most 1024 bytes(?:, not .+)?$/,
    ],
    [
      'POST',
      '/rooms/r1/threads',
      { ...comment, position },
      400,
      /^position\.selector must be at most 3 characters(?:, not .+)?$/,
    ],
    ['POST', '/rooms/room1/threads', comment, 400, /^roomId must be 1 to 4 characters(?:, not .+)?$/],
  ];
  for (const [method, asked, body, status, error] of cases) {
    const answer = await server.request<Failure>(method, asked, { body });
    t.equal(answer.status, status, answer.text);
    t.match(answer.json.error, error);
  }
  t.equal((await server.request('POST', `${path}/comments`, { body: comment })).status, 201);
  t.match(
    (await server.request<Failure>('POST', `${path}/comments`, { body: comment })).json.error,
    /^A thread holds at most 3 comments$/,
  );
  await updateEnvironment(server.ctx, server.environment.id, {
    settings: { limits: { jsonBodyBytes: 500_000, bodyLength: 400_000, commentsPerThread: 10 } },
  });
  t.equal(
    (await server.request('POST', `${path}/comments`, { body: { ...comment, body: 'x'.repeat(400_000) } })).status,
    201,
    'raised above the default',
  );
  t.equal(
    (await server.request('POST', `${path}/comments`, { body: { ...comment, ignored: 'x'.repeat(500_000) } })).status,
    413,
  );
});

t.test('routes with an ETag of the log require a secret key', (t) => {
  for (const route of apiRoutes) {
    if (route.conditions === 'log')
      t.equal(route.credential, 'secret', `${route.operationId}: its ETag is of a reader in an environment`);
  }
  t.end();
});
