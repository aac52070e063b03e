import t, { type Test } from 'tap';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { CollabError, errorKinds } from '../../src/model/errors.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import type { TestResponse } from '../helpers/http.ts';
import { isDropped } from '../helpers/core.ts';
import { RawConnection } from '../helpers/raw-http.ts';
import { adminSession } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Errors (docs/errors.md). In which order they are found: errors-order.test.ts. Of bodies: bodies.test.ts.

const service = await startService(t);
const tenant = await service.tenant('errors');
await addUser(tenant, 'ann');

/** Holds that a refusal is JSON of the form `{ error: <message string> }`, and that its head says so too. */
function refuses(t: Test, status: number, message: RegExp | string, code: string, answer: TestResponse<Failure>): void {
  t.equal(answer.status, status);
  t.strictSame(Object.keys(answer.json ?? {}), ['error'], 'exactly { error }');
  t.match(answer.json.error, message);
  t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  t.equal(answer.headers.get('x-error-code'), code, 'the machine code is in a header');
  t.match(answer.headers.get('x-request-id'), /^[A-Za-z0-9._-]{1,64}$/);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.equal(answer.headers.get('x-content-type-options'), 'nosniff');
}

const ask = (method: string, path: string, options: Parameters<typeof tenant.request>[2] = {}) =>
  tenant.request<Failure>(method, path, options);

t.test('400 | missing or invalid parameters', async (t) => {
  refuses(
    t,
    400,
    'body is required',
    'invalid_request',
    await ask('POST', '/rooms/r/threads', { body: { userId: 'ann' } }),
  );
  refuses(
    t,
    400,
    'position.x must be between 0 and 1',
    'invalid_request',
    await ask('POST', '/rooms/r/threads', { body: { userId: 'ann', body: 'Hi', position: { x: 2, y: 0 } } }),
  );
  refuses(t, 400, 'The body is not valid JSON', 'invalid_json', await ask('POST', '/rooms/r/threads', { body: '{' }));
  refuses(
    t,
    400,
    'Content-Type must be application/json',
    'invalid_content_type',
    await ask('POST', '/rooms/r/threads', { body: '{}', headers: { 'Content-Type': 'text/plain' } }),
  );
  refuses(t, 400, /^limit must be /, 'invalid_request', await ask('GET', '/rooms?limit=0'));
  refuses(
    t,
    400,
    'metadata.<key> must name a key of at least 1 character',
    'invalid_request',
    await ask('GET', '/rooms?metadata.=x'),
  );
  refuses(t, 400, 'Invalid cursor', 'invalid_cursor', await ask('GET', '/rooms?cursor=x'));
  refuses(
    t,
    400,
    /^Unknown user: eve\. The user must have connected before, or be created with PUT \/users\/eve$/,
    'unknown_user',
    await ask('POST', '/rooms/r/threads', { body: { userId: 'eve', body: 'Hi' } }),
  );
});

t.test('401 | invalid or missing API key or token', async (t) => {
  refuses(t, 401, /Authorization: Bearer sk_/, 'missing_credentials', await ask('GET', '/rooms', { key: null }));
  refuses(t, 401, 'Invalid API key', 'invalid_key', await ask('GET', '/rooms', { key: 'sk_x' }));
  refuses(
    t,
    401,
    /^Invalid token: /,
    'invalid_token',
    await ask('GET', '/turn-credentials', {
      key: null,
      headers: { 'X-Service-Key': tenant.publishableKey, 'X-Service-Token': 'a.b.c' },
    }),
  );
});

t.test('403 | forbidden', async (t) => {
  const { value } = await tenant.newKey({ scope: 'read' });
  refuses(
    t,
    403,
    'The key has the scope read: this needs a key of the scope full',
    'forbidden',
    await ask('POST', '/rooms/r/threads', { key: value, body: { userId: 'ann', body: 'Hi' } }),
  );
  const { value: moderator } = await tenant.newKey({ scope: 'moderate' });
  refuses(
    t,
    403,
    'The key has the scope moderate: this needs a key of the scope full',
    'forbidden',
    await ask('DELETE', '/users/ann', { key: moderator }),
  );
  const { value: confined } = await tenant.newKey({ rooms: 'other' });
  refuses(
    t,
    403,
    'The credential does not reach this room',
    'forbidden',
    await ask('GET', '/rooms/r', { key: confined }),
  );
});

t.test('404 | not found | operations on an unknown thread or comment', async (t) => {
  for (const [method, path, body] of [
    ['GET', '/threads/unknown', undefined],
    ['PATCH', '/threads/unknown', { resolved: true }],
    ['DELETE', '/threads/unknown', undefined],
    ['GET', '/threads/unknown/comments', undefined],
    ['POST', '/threads/unknown/comments', { userId: 'ann', body: 'Hi' }],
  ] as const) {
    refuses(t, 404, 'Thread not found', 'thread_not_found', await ask(method, path, { body }));
  }
  refuses(
    t,
    404,
    'Comment not found',
    'comment_not_found',
    await ask('PATCH', '/comments/unknown', { body: { body: 'Hi' } }),
  );
  refuses(t, 404, 'Comment not found', 'comment_not_found', await ask('DELETE', '/comments/unknown'));
  refuses(
    t,
    404,
    'Comment not found',
    'comment_not_found',
    await ask('POST', '/comments/unknown/reactions', { body: { userId: 'ann', emoji: '👍' } }),
  );
  refuses(t, 404, 'Reaction not found', 'reaction_not_found', await ask('DELETE', '/reactions/unknown'));
  refuses(t, 404, 'Room not found', 'room_not_found', await ask('DELETE', '/rooms/unknown'));
  refuses(t, 404, 'User not found', 'user_not_found', await ask('GET', '/users/unknown'));
});

t.test('404 | not found | whatever an id looks like', async (t) => {
  const { id, comments } = await addThread(tenant, 'ids');
  const commentId = comments[0]?.id ?? '';
  const odd = [
    'x'.repeat(65),
    'x'.repeat(3000),
    '%00',
    'a%20b',
    'a%2Fb',
    '%E2%82%AC',
    '~',
    'constructor',
    '__proto__',
    id.toUpperCase(),
    `${id}x`,
    id.slice(0, -1),
    commentId,
    `${commentId}x`,
  ];
  for (const text of odd) {
    refuses(t, 404, 'Thread not found', 'thread_not_found', await ask('GET', `/threads/${text}`));
    refuses(t, 404, 'Reaction not found', 'reaction_not_found', await ask('DELETE', `/reactions/${text}`));
    if (text !== commentId)
      refuses(t, 404, 'Comment not found', 'comment_not_found', await ask('DELETE', `/comments/${text}`));
  }
});

t.test('404 | an unknown path, or a known one with another method', async (t) => {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  for (const path of new Set(apiRoutes.map((route) => route.path))) {
    for (const method of methods) {
      if (apiRoutes.some((route) => route.path === path && route.method === method)) continue;
      const answer = await ask(method, path.replaceAll(/:\w+/g, 'x'));
      // A path with a parameter may stand for another that is fixed at its place.
      if (answer.headers.get('x-error-code') === 'route_not_found') refuses(t, 404, /./, 'route_not_found', answer);
      else
        t.ok(
          apiRoutes.some((route) => route.method === method && route.path !== path),
          `${method} ${path} is another route`,
        );
    }
  }
  for (const path of [
    '',
    '/',
    '/nowhere',
    '/rooms/r/threads/x',
    '/rooms//threads',
    '//rooms',
    '/Rooms',
    '/rooms/r/threads%2f',
    '/comments',
    '/threads',
  ]) {
    refuses(t, 404, /./, 'route_not_found', await ask('GET', path === '//rooms' ? '//api/v1//rooms' : path));
  }
});

t.test('409 | conflict; duplicate slug or identifier', async (t) => {
  await addThread(tenant, 'r', { id: 'own-thread-id' });
  refuses(
    t,
    409,
    'The id own-thread-id is taken by another thread',
    'id_taken',
    await ask('POST', '/rooms/r/threads', { body: { id: 'own-thread-id', userId: 'ann', body: 'Hi' } }),
  );
  const headers = { 'Idempotency-Key': 'once' };
  await addThread(tenant, 'r', {}, { headers });
  refuses(
    t,
    409,
    /^Idempotency-Key was used before with another body/,
    'idempotency_key_reused',
    await ask('POST', '/rooms/r/threads', { body: { userId: 'ann', body: 'Other' }, headers }),
  );
  await t.rejects(createEnvironment(service.ctx, { slug: 'errors' }), { code: 'slug_taken', kind: { status: 409 } });
  const key = await adminSession(service);
  refuses(
    t,
    409,
    'The slug errors is taken by another environment',
    'slug_taken',
    await ask('POST', '/admin/environments', { key, body: { slug: 'errors' } }),
  );
});

t.test('409 | never for resolving what is resolved, nor for a repeated reaction', async (t) => {
  const { id, comments } = await addThread(tenant, 'r');
  const reaction = { userId: 'ann', emoji: '🎉' };
  const statuses = [];
  for (let i = 0; i < 2; i++) {
    statuses.push((await ask('PATCH', `/threads/${id}`, { body: { resolved: true } })).status);
    statuses.push((await ask('POST', `/comments/${comments[0]?.id}/reactions`, { body: reaction })).status);
  }
  t.strictSame(statuses, [200, 201, 200, 200]);
});

t.test('413 | payload too large', async (t) => {
  refuses(
    t,
    413,
    'The body must be at most 262144 bytes',
    'payload_too_large',
    await ask('POST', '/rooms/r/threads', { body: 'x'.repeat(262_145) }),
  );
});

t.test('429 | rate limit exceeded', async (t) => {
  const { value } = await tenant.newKey({ rateLimit: 1 });
  await ask('GET', '/rooms', { key: value });
  const answer = await ask('GET', '/rooms', { key: value });
  refuses(t, 429, 'Rate limit exceeded. Try again in 60s', 'rate_limited', answer);
  t.equal(answer.headers.get('retry-after'), '60');
});

t.test('500 | internal server error | never leaks internals', async (t) => {
  const { publicError } = await import('../../src/model/errors.ts');
  const shown = publicError(new TypeError('secret detail of ours'));
  t.equal(shown.kind.status, 500);
  t.equal(shown.message, 'Internal server error');
  t.equal(publicError(new CollabError('thread_not_found', 'Thread not found')).message, 'Thread not found');
});

t.test('every status of the catalogue is one that clients have to know', (t) => {
  // 412 and 416 only for those who asked with If-Match or Range; 503 is the answer of /readyz.
  const allowed = [400, 401, 403, 404, 409, 412, 413, 416, 429, 500, 503];
  for (const [code, { status }] of Object.entries(errorKinds)) t.ok(allowed.includes(status), code);
  t.end();
});

t.test('a fault in the framing is no answer that a next request could be taken for', async (t) => {
  const { port } = new URL(service.urls[0] ?? '');
  const connection = await RawConnection.open(Number(port));
  await connection.send(
    `POST /api/v1/rooms/r/threads HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhelloGET /api/v1/rooms HTTP/1.1\r\nHost: x\r\n\r\n`,
  );
  t.ok(isDropped(await connection.ended));
});

t.test('HEAD | as GET without a body, refusals too', async (t) => {
  for (const [path, status] of [
    ['/rooms', 200],
    ['/threads/unknown', 404],
    ['/nowhere', 404],
  ] as const) {
    const head = await tenant.request('HEAD', path);
    const get = await tenant.request('GET', path);
    t.equal(head.status, status);
    t.equal(head.text, '');
    for (const name of ['content-type', 'x-error-code', 'cache-control', 'etag'])
      t.equal(head.headers.get(name), get.headers.get(name), name);
  }
  t.equal((await tenant.request('HEAD', '/rooms', { key: null })).status, 401);
});

t.test('X-Request-Id | a well-formed one comes back, any other is replaced', async (t) => {
  for (const id of ['a', 'A.b_c-9', 'x'.repeat(64)])
    t.equal(
      (await tenant.request('GET', '/rooms', { headers: { 'X-Request-Id': id } })).headers.get('x-request-id'),
      id,
    );
  const given = ['x'.repeat(65), 'a b', 'a/b', '<script>'];
  for (const id of given)
    t.match(
      (await tenant.request('GET', '/rooms', { headers: { 'X-Request-Id': id } })).headers.get('x-request-id'),
      /^[A-Za-z0-9._-]{1,64}$/,
    );
  const made = await Promise.all(Array.from({ length: 20 }, () => tenant.request('GET', '/rooms')));
  t.equal(new Set(made.map(({ headers }) => headers.get('x-request-id'))).size, 20, 'ours are told apart');
  done(200, made[0] ?? (await tenant.request('GET', '/rooms')));
});
