import t from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';

interface Failure {
  readonly error: string;
}
interface Created {
  readonly thread: { readonly id: string; readonly comments: readonly { readonly id: string }[] };
}

async function seed({ request }: TestServer): Promise<string> {
  await request('PUT', '/users/ann', { body: { name: 'Ann' } });
  const { json } = await request<Created>('POST', '/rooms/r1/threads', { body: { userId: 'ann', body: 'Hello' } });
  return json.thread.id;
}

t.test('every response of the API has the documented headers', async (t) => {
  const server = await startTestServer(t, { flags: { 'rateLimit.exempt': '' } });
  const threadId = await seed(server);
  const cases: [method: string, path: string, cache: string][] = [
    ['GET', '/rooms', 'private, no-cache'],
    ['GET', '/rooms/r1/threads', 'private, no-cache'],
    ['GET', `/threads/${threadId}/comments`, 'private, no-cache'],
    ['GET', '/users', 'private, no-cache'],
    ['GET', `/threads/${threadId}`, 'no-store'],
    ['GET', '/events', 'no-store'],
    ['GET', '/openapi.json', 'no-store'],
    ['GET', '/nowhere', 'no-store'],
    ['GET', '/threads/unknown/comments', 'no-store'],
    ['HEAD', '/rooms', 'private, no-cache'],
  ];
  for (const [method, path, cache] of cases) {
    const { headers } = await server.request(method, path, { headers: { 'X-Request-Id': 'job-1' } });
    t.equal(headers.get('content-type'), 'application/json; charset=utf-8', path);
    t.equal(headers.get('cache-control'), cache, path);
    t.equal(headers.get('x-content-type-options'), 'nosniff', path);
    t.equal(headers.get('x-request-id'), 'job-1', path);
    t.equal(headers.get('ratelimit-policy'), '"default";q=100;w=60', path);
    t.match(headers.get('ratelimit'), /^"default";r=\d+;t=60$/, path);
  }
});

t.test('a refusal is one message in the body and its code in a header', async (t) => {
  const { request } = await startTestServer(t);
  const { status, json, headers } = await request('GET', '/threads/unknown');
  t.equal(status, 404);
  t.strictSame(Object.keys(json as object), ['error']);
  t.equal(headers.get('x-error-code'), 'thread_not_found');
});

t.test('a wrong path or method is 404 with the error body', async (t) => {
  const { request } = await startTestServer(t);
  for (const [method, path] of [
    ['GET', '/nowhere'],
    ['GET', ''],
    ['GET', '/'],
    ['PUT', '/rooms/r1/threads'],
    ['OPTIONS', '/rooms'],
    ['GET', '//'],
    ['POST', '//livez'],
    ['GET', '//api/v2/rooms'],
    ['GET', '//api/v1x'],
  ] as const) {
    const { status, json, headers } = await request<Failure>(method, path);
    t.equal(status, 404, `${method} ${path}`);
    t.type(json.error, 'string');
    t.equal(headers.get('x-error-code'), 'route_not_found');
  }
});

t.test('every route except the public ones requires a credential and refuses an unknown key', async (t) => {
  const { request } = await startTestServer(t);
  for (const route of apiRoutes) {
    const path = route.path.replaceAll(/:\w+/g, 'x');
    const without = await request<Failure>(route.method, path, { key: null });
    if (route.credential === 'public') {
      t.equal(without.status, route.body === undefined ? 200 : 400, `${route.operationId} without a key`);
      continue;
    }
    t.equal(without.status, 401, `${route.operationId} without a key`);
    t.equal(without.headers.get('x-error-code'), 'missing_credentials');
    t.equal(without.headers.get('www-authenticate'), 'Bearer');
    const wrong = await request<Failure>(route.method, path, { key: 'sk_default_unknown' });
    t.equal(wrong.status, 401, `${route.operationId} with an unknown key`);
    // Routes for users check only the two headers of users.
    t.equal(wrong.headers.get('x-error-code'), route.credential === 'user' ? 'missing_credentials' : 'invalid_key');
  }
  const basic = await request('GET', '/rooms', { key: null, headers: { Authorization: 'Basic c2s6' } });
  t.equal(basic.headers.get('x-error-code'), 'missing_credentials');
});

t.test('the scheme may be written in any case', async (t) => {
  const { request, key } = await startTestServer(t);
  t.equal((await request('GET', '/rooms', { key: null, headers: { Authorization: `bearer ${key}` } })).status, 200);
});

t.test('checks run in order: limit, route, credential, scope, size, syntax, existence', async (t) => {
  const { request, newKey } = await startTestServer(t);
  const reader = await newKey({ scope: 'read' });
  const confined = await newKey({ rooms: 'other' });
  const spent = await newKey({ rateLimit: 1 });
  await request('GET', '/rooms', { key: spent });
  const huge = 'x'.repeat(256 * 1024 + 1);
  const broken = '{"body":';
  const cases: [
    name: string,
    method: string,
    path: string,
    body: string | undefined,
    key: string | null,
    status: number,
  ][] = [
    ['limit before route', 'GET', '/nowhere', undefined, spent, 429],
    ['route before credential', 'POST', '/nowhere', huge, null, 404],
    ['credential before size', 'POST', '/rooms/r1/threads', huge, null, 401],
    ['credential before syntax', 'POST', '/rooms/r1/threads', broken, 'sk_x', 401],
    ['credential before existence', 'GET', '/threads/unknown', undefined, null, 401],
    ['scope before size', 'POST', '/rooms/r1/threads', huge, reader, 403],
    ['scope before syntax', 'POST', '/threads/unknown/comments', broken, reader, 403],
    ['room before size', 'POST', '/rooms/r1/threads', huge, confined, 403],
    ['room before syntax', 'GET', '/rooms/r1/threads?limit=x', undefined, confined, 403],
    ['size before syntax', 'POST', '/threads/unknown/comments', huge, '', 413],
    ['syntax before existence', 'POST', '/threads/unknown/comments', broken, '', 400],
    ['validation before existence', 'POST', '/threads/unknown/comments', '{"body":7}', '', 400],
    ['existence at last', 'POST', '/threads/unknown/comments', '{"userId":"ann","body":"Hello"}', '', 404],
  ];
  await request('PUT', '/users/ann', { body: {} });
  for (const [name, method, path, body, key, status] of cases) {
    const answer = await request<Failure>(method, path, key === '' ? { body } : { body, key });
    t.equal(answer.status, status, `${name}: ${answer.text}`);
  }
});

t.test('bodies that are not JSON are refused with the reason', async (t) => {
  const { request } = await startTestServer(t);
  const path = '/rooms/r1/threads';
  const deep = '['.repeat(200_000);
  const cases: [body: string | Uint8Array, type: string, error: RegExp, code: string][] = [
    ['{}', 'text/plain', /^Content-Type must be application\/json, not "text\/plain"$/, 'invalid_content_type'],
    ['{}', 'application/x-www-form-urlencoded', /Content-Type/, 'invalid_content_type'],
    ['{}', 'application/jsonp', /Content-Type/, 'invalid_content_type'],
    ['{', 'application/json', /not valid JSON/, 'invalid_json'],
    ['', 'application/json', /empty/, 'invalid_json'],
    [deep, 'application/json', /^The body must not nest arrays and objects more than 64 levels deep$/, 'invalid_json'],
    [Buffer.from('{"body":"\xff"}', 'latin1'), 'application/json', /UTF-8/, 'invalid_json'],
    ['[]', 'application/json', /must be a JSON object/, 'invalid_json'],
    ['"text"', 'application/json', /must be a JSON object/, 'invalid_json'],
    ['null', 'application/json', /must be a JSON object/, 'invalid_json'],
    ['{}', 'Application/JSON ; charset=utf-8', /^userId is required$/, 'invalid_request'],
  ];
  for (const [body, type, error, code] of cases) {
    const { status, json, headers } = await request<Failure>('POST', path, { body, headers: { 'Content-Type': type } });
    t.equal(status, 400, `${type} ${String(body).slice(0, 20)}`);
    t.match(json.error, error);
    t.equal(headers.get('x-error-code'), code);
  }
});

t.test('parameters of the path are decoded, and refused if they cannot be decoded', async (t) => {
  const { request } = await startTestServer(t);
  await request('PUT', '/users/ann', { body: {} });
  for (const room of ['a/b', 'a b', 'https://example.com/?x=1#y', 'ä€😀', '..', '%', "~!'()*"]) {
    const encoded = room === '..' ? '%2e%2e' : encodeURIComponent(room);
    const { json } = await request<{ thread: { roomId: string } }>('POST', `/rooms/${encoded}/threads`, {
      body: { userId: 'ann', body: 'Hello' },
    });
    t.equal(room === '..' ? room : json.thread.roomId, room);
  }
  for (const bad of ['%', '%zz', '%ff', '%ED%A0%80']) {
    const { status, json } = await request<Failure>('GET', `/rooms/${bad}/threads`);
    t.equal(status, 400, bad);
    t.match(json.error, /^roomId in the path must be percent-encoded UTF-8, not "/);
  }
});

t.test('a trailing slash is the same route', async (t) => {
  const { request } = await startTestServer(t);
  t.equal((await request('GET', '/rooms/')).status, 200);
  t.equal((await request('GET', '/rooms/?limit=5')).status, 200);
});

t.test('HEAD answers as GET without the body', async (t) => {
  const server = await startTestServer(t);
  await seed(server);
  const get = await server.request('GET', '/rooms');
  const connection = await server.connect();
  await connection.send(
    `HEAD /api/v1/rooms HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\n\r\n`,
  );
  const head = await connection.answer({ toHead: true });
  t.equal(head.status, 200);
  t.equal(head.headers['content-length'], String(Buffer.byteLength(get.text)));
  await connection.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  t.equal((await connection.answer()).body, '{"status":"ok"}');
});

t.test('a page of a list has the cursor of the next page in its body and in Link', async (t) => {
  const server = await startTestServer(t, { flags: { trustProxy: '127.0.0.1' } });
  const threadId = await seed(server);
  for (let i = 0; i < 4; i++)
    await server.request('POST', `/threads/${threadId}/comments`, { body: { userId: 'ann', body: `No ${i}` } });
  const bodies: string[] = [];
  let path = `/threads/${threadId}/comments?limit=2`;
  for (;;) {
    const { json, headers } = await server.request<{ items: { body: string }[]; nextCursor?: string }>('GET', path);
    bodies.push(...json.items.map((item) => item.body));
    const link = headers.get('link');
    t.equal(link === null, json.nextCursor === undefined);
    if (link === null || json.nextCursor === undefined) break;
    const [, url = ''] = /^<(.+)>; rel="next"$/.exec(link) ?? [];
    t.equal(new URL(url).origin, server.url);
    t.equal(new URL(url).searchParams.get('cursor'), json.nextCursor);
    t.equal(new URL(url).searchParams.get('limit'), '2');
    path = url.slice(`${server.url}/api/v1`.length);
  }
  t.strictSame(bodies, ['Hello', 'No 0', 'No 1', 'No 2', 'No 3']);
  const proxied = await server.request('GET', `/threads/${threadId}/comments?limit=2`, {
    headers: { 'X-Forwarded-Proto': 'https' },
  });
  t.match(proxied.headers.get('link'), /^<https:\/\//);
});

t.test('behind a proxy, Link to the next page begins with publicUrl', async (t) => {
  const server = await startTestServer(t, { flags: { publicUrl: 'https://comments.example.com/base' } });
  const threadId = await seed(server);
  for (let i = 0; i < 2; i++)
    await server.request('POST', `/threads/${threadId}/comments`, { body: { userId: 'ann', body: `No ${i}` } });
  const { headers } = await server.request('GET', `/threads/${threadId}/comments?limit=2`);
  t.ok(
    headers
      .get('link')
      ?.startsWith(`<https://comments.example.com/base/api/v1/threads/${threadId}/comments?limit=2&cursor=`),
    headers.get('link') ?? 'none',
  );
});

t.test('a repeated create gets the first answer again', async (t) => {
  const server = await startTestServer(t);
  const threadId = await seed(server);
  const path = `/threads/${threadId}/comments`;
  const post = (body: unknown, key: string) =>
    server.request<Failure>('POST', path, { body, headers: { 'Idempotency-Key': key } });
  const first = await post({ userId: 'ann', body: 'Once' }, 'k1');
  t.equal(first.status, 201);
  t.equal(first.headers.get('idempotent-replayed'), null);
  for (const key of ['k1', '"k1"']) {
    const again = await post({ userId: 'ann', body: 'Once' }, key);
    t.equal(again.status, 201);
    t.equal(again.text, first.text);
    t.equal(again.headers.get('idempotent-replayed'), 'true');
  }
  t.equal((await post({ userId: 'ann', body: 'Twice' }, 'k1')).status, 409);
  t.equal((await post({ userId: 'ann', body: 'Once' }, 'x'.repeat(256))).status, 400);
  t.equal((await server.request<{ items: unknown[] }>('GET', path)).json.items.length, 2);
});

t.test('an internal error reveals nothing to the client, and is logged with its cause', async (t) => {
  const server = await startTestServer(t);
  const lines: object[] = [];
  const { store } = server.ctx;
  const broken = new Proxy(store, {
    get: (target, name) => {
      if (name === 'range' || name === 'cached') return () => Promise.reject(new TypeError('secret detail'));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const { createLogger } = await import('../../src/observability/log.ts');
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line) => void lines.push(JSON.parse(line) as object) },
  });
  const second = await startTestServer(t, { store: broken, environment: server.environment, log });
  const { status, text, headers } = await second.request('GET', '/rooms', { headers: { 'X-Request-Id': 'req-7' } });
  t.equal(status, 500);
  t.equal(text, '{"error":"Internal server error"}');
  t.equal(headers.get('x-error-code'), 'internal');
  t.match(lines, [{ level: 'error', requestId: 'req-7', err: { message: 'secret detail', stack: /TypeError/ } }]);
});

t.test('at level debug each request is logged in one line, with the route and without the path', async (t) => {
  const lines: object[] = [];
  const { createLogger } = await import('../../src/observability/log.ts');
  const log = createLogger({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => void lines.push(JSON.parse(line) as object) },
  });
  const server = await startTestServer(t, { log });
  await server.request('GET', '/rooms/private/threads', { headers: { 'X-Request-Id': 'a' } });
  await server.request('GET', '/nowhere', { headers: { 'X-Request-Id': 'b' } });
  t.match(lines, [
    { level: 'debug', requestId: 'a', method: 'GET', route: 'threads.list', status: 200, ms: Number },
    { level: 'debug', requestId: 'b', method: 'GET', route: '', status: 404 },
  ]);
  t.notMatch(JSON.stringify(lines), /private/);
});

t.test('while draining every response closes its connection', async (t) => {
  const server = await startTestServer(t);
  server.status.draining = true;
  t.equal((await server.request('GET', '/rooms')).headers.get('connection'), 'close');
  t.equal(await server.http.whenIdle(0), true);
});

t.test('the server waits for pending requests, but not forever', async (t) => {
  const server = await startTestServer(t);
  const connection = await server.connect();
  await connection.send(
    `POST /api/v1/rooms/r1/threads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\nContent-Length: 10\r\n\r\n`,
  );
  while (server.http.pending() === 0) await new Promise(setImmediate);
  t.equal(await server.http.whenIdle(1), false);
  const idle = server.http.whenIdle(60_000);
  connection.destroy();
  t.equal(await idle, true);
});

t.test('a token is created for a user, confined like the key', async (t) => {
  const server = await startTestServer(t);
  const { status, json } = await server.request<{ token: string; expiresAt: string }>('POST', '/users/bob/tokens', {
    body: { ttl: 600, name: 'Bob' },
  });
  t.equal(status, 201);
  t.strictSame(Object.keys(json), ['token', 'expiresAt']);
  t.equal(json.token.split('.').length, 3);
  t.match((await server.request('GET', '/users/bob')).json, { user: { name: 'Bob', lastSeenAt: null } });

  const claimsOf = (token: string): unknown =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const key = await server.newKey({ rooms: 'docs/*' });
  const own = await server.request<{ token: string }>('POST', '/users/bob/tokens', { body: {}, key });
  t.match(claimsOf(own.json.token), { sub: 'bob', rooms: ['docs/*'] });
  const less = await server.request<{ token: string }>('POST', '/users/bob/tokens', {
    body: { rooms: ['docs/a', 'docs/b*'] },
    key,
  });
  t.match(claimsOf(less.json.token), { rooms: ['docs/a', 'docs/b*'] });
  for (const rooms of [['*'], ['other'], ['doc*'], ['docs/a', 'x']]) {
    t.equal((await server.request('POST', '/users/bob/tokens', { body: { rooms }, key })).status, 403, rooms.join());
  }
  t.equal((await server.request('POST', '/users/bob/tokens', { body: { ttl: 59 } })).status, 400);
  t.equal((await server.request('POST', '/users/bob/tokens', { body: { role: 'admin' } })).status, 400);
  const reader = await server.newKey({ scope: 'moderate' });
  t.equal((await server.request('POST', '/users/bob/tokens', { body: {}, key: reader })).status, 403);
});
