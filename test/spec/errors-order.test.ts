import t, { type Test } from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import type { Route } from '../../src/http/api/route.ts';
import { bodyOf, callOf, type RouteCall, seedFor, type Seeds, successes, titleOf } from '../helpers/route-calls.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, type Failure } from '../helpers/writer.ts';

// The order of docs/api.md: rate limit 429, route 404, credential 401, scope 403, body size 413, syntax and validation
// 400, existence 404, conflict 409. A request that is wrong in several ways is refused for the first of them.

const service = await startService(t);
const tenant = await service.tenant('order');
await addUser(tenant, 'ann');
const spent = (await tenant.newKey({ rateLimit: 1 })).value;
await tenant.request('GET', '/rooms', { key: spent });
const reader = (await tenant.newKey({ scope: 'read' })).value;

const huge = 'x'.repeat(256 * 1024 + 1);
const broken = '{"body":';
const NO_KEY = null;

interface Wrong extends Partial<RouteCall> {
  readonly key?: string | null;
}

async function holds(
  t: Test,
  status: number,
  what: string,
  method: string,
  path: string,
  { body, headers, key }: Wrong,
): Promise<void> {
  const answer = await tenant.request<Failure>(method, path, { body, headers, ...(key === undefined ? {} : { key }) });
  t.equal(`${answer.status} ${Object.keys(answer.json ?? {}).join()}`, `${status} error`, `${what} | ${status}`, {
    answer: answer.text.slice(0, 200),
  });
}

/** The seeds with every id replaced by one that nobody has. */
function unknown(seeds: Seeds): Seeds {
  return Object.fromEntries(Object.keys(seeds).map((name) => [name, 'nobody-has-this']));
}

/** Whether the path names a record that only the server's own ids can name. */
const namesRecord = (route: Route): boolean => /:(?:threadId|commentId|reactionId)/.test(route.path);

t.test('rate limit 429 before route 404', (t) => holds(t, 429, 'an unknown path', 'GET', '/nowhere', { key: spent }));
t.test('route 404 before credential 401', (t) =>
  holds(t, 404, 'an unknown path without a key', 'GET', '/nowhere', { key: NO_KEY }),
);
t.test('route 404 before body size 413', (t) =>
  holds(t, 404, 'an unknown path with a huge body', 'POST', '/nowhere', { body: huge }),
);

for (const route of apiRoutes) {
  if (route.credential !== 'secret' && route.credential !== 'either') continue;
  t.test(titleOf(route), async (t) => {
    const { method, path, body, headers } = callOf(route, await seedFor(route, tenant));
    const nowhere = callOf(route, unknown(await seedFor(route, tenant))).path;
    const takesJson = route.body !== undefined;

    await holds(t, 429, 'rate limit before credential', method, path, { key: spent, body, headers });
    await holds(t, 429, 'rate limit before existence', method, nowhere, { key: spent, body, headers });
    await holds(t, 401, 'credential before existence', method, nowhere, { key: NO_KEY, body, headers });
    await holds(t, 401, 'credential before the query', method, `${path}?limit=x&cursor=x&include=x`, {
      key: 'sk_x',
      body,
      headers,
    });
    if (takesJson) {
      await holds(t, 429, 'rate limit before size', method, path, { key: spent, body: huge, headers });
      await holds(t, 401, 'credential before size', method, path, { key: NO_KEY, body: huge, headers });
      await holds(t, 401, 'credential before syntax', method, path, { key: 'sk_x', body: broken, headers });
      await holds(t, 413, 'size before syntax and existence', method, nowhere, { body: huge, headers });
      await holds(t, 413, 'size before content type', method, path, {
        body: huge,
        headers: { ...headers, 'Content-Type': 'text/plain' },
      });
      await holds(t, 400, 'content type before syntax', method, path, {
        body: broken,
        headers: { ...headers, 'Content-Type': 'text/plain' },
      });
      await holds(t, 400, 'syntax before existence', method, nowhere, { body: broken, headers });
      await holds(t, 400, 'not an object before existence', method, nowhere, { body: [], headers });
    }
    if (route.access !== 'read') {
      await holds(t, 403, 'scope before existence', method, nowhere, { key: reader, body, headers });
      if (takesJson) {
        await holds(t, 403, 'scope before size', method, path, { key: reader, body: huge, headers });
        await holds(t, 403, 'scope before syntax', method, path, { key: reader, body: broken, headers });
      }
    }
    if (namesRecord(route)) {
      await holds(t, 404, 'existence at last', method, nowhere, { body, headers });
      if (bodyOf(route)?.required !== undefined)
        await holds(t, 400, 'validation before existence', method, nowhere, { body: {}, headers });
    } else if (!/:roomId$|:userId$/.test(route.path)) {
      const answer = await tenant.request(method, path, { body, headers });
      t.ok(successes(route).includes(answer.status), 'nothing wrong');
    }
  });
}

t.test('scope | a key of other rooms | 403 before size, syntax and existence', async (t) => {
  const elsewhere = (await tenant.newKey({ rooms: 'elsewhere' })).value;
  const { id, comments } = await addThread(tenant, 'room');
  for (const [method, path, takesJson] of [
    ['POST', '/rooms/room/threads', true],
    ['GET', '/rooms/room', false],
    ['GET', '/rooms/room/threads?limit=x', false],
    ['GET', '/rooms/unknown', false],
    ['GET', `/threads/${id}`, false],
    ['GET', `/threads/${id}/comments?limit=1&cursor=x`, false],
    ['PATCH', `/threads/${id}`, false],
    ['DELETE', `/threads/${id}`, false],
    ['POST', `/threads/${id}/comments`, false],
    ['PATCH', `/comments/${comments[0]?.id}`, false],
    ['DELETE', `/comments/${comments[0]?.id}`, false],
  ] as const) {
    await holds(t, 403, `${method} ${path}`, method, path, {
      key: elsewhere,
      ...(method === 'GET' || method === 'DELETE' ? {} : { body: { userId: 'ann' } }),
    });
    if (takesJson)
      await holds(t, 403, `${method} ${path} with a huge body`, method, path, { key: elsewhere, body: huge });
  }
});

t.test('existence 404 before conflict 409', async (t) => {
  const { id } = await addThread(tenant, 'room');
  await addComment(tenant, id, { id: 'taken-id' });
  const taken = { id: 'taken-id', userId: 'ann', body: 'Hi' };
  await holds(t, 404, 'an unknown thread', 'POST', '/threads/nobody-has-this/comments', { body: taken });
  await holds(t, 409, 'a known one', 'POST', `/threads/${id}/comments`, { body: taken });
});

t.test('validation 400 before conflict 409', async (t) => {
  const { id } = await addThread(tenant, 'room', { id: 'taken-thread' });
  await holds(t, 400, 'a body too long', 'POST', '/rooms/room/threads', { body: { id, userId: 'ann', body: '' } });
  await holds(t, 400, 'an unknown author', 'POST', '/rooms/room/threads', {
    body: { id, userId: 'nobody', body: 'Hi' },
  });
  await holds(t, 409, 'nothing else wrong', 'POST', '/rooms/room/threads', { body: { id, userId: 'ann', body: 'Hi' } });
  const headers = { 'Idempotency-Key': 'used' };
  await addThread(tenant, 'room', {}, { headers });
  await holds(t, 400, 'a key that was used, with a bad body', 'POST', '/rooms/room/threads', {
    body: { userId: 'ann' },
    headers,
  });
  await holds(t, 409, 'a key that was used, with another good body', 'POST', '/rooms/room/threads', {
    body: { userId: 'ann', body: 'Other' },
    headers,
  });
});

t.test('a disabled environment is 403 before all that is in it', async (t) => {
  const { updateEnvironment } = await import('../../src/domain/environments/environments.ts');
  const closed: Tenant = await service.tenant('closed');
  await updateEnvironment(service.ctx, closed.environment.id, { disabled: true });
  const answer = await closed.request<Failure>('POST', '/threads/unknown/comments', { body: huge });
  t.equal(answer.status, 403);
  t.equal(answer.headers.get('x-error-code'), 'environment_disabled');
});
