import t from 'tap';
import type { Route } from '../../src/http/api/route.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import type { TestResponse } from '../helpers/http.ts';
import { adminSession, bodyOf, callOf, type RouteCall, seedFor, successes, titleOf } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Idempotency-Key on all POST, for every such route of the table, over two workers.

const AT_ONCE = 50;
const DAY_MS = 24 * 3_600_000;

const service = await startService(t, { workers: 2 });
const tenant = await service.tenant('idempotency');
await addUser(tenant, 'ann');

async function send(
  { method, path, body, headers }: RouteCall,
  key: string,
  worker = 0,
): Promise<TestResponse<Failure>> {
  const credential = path.startsWith('/admin') ? await adminSession(service) : tenant.secretKey;
  return tenant.request(method, path, {
    body,
    key: credential,
    headers: { ...headers, 'Idempotency-Key': key },
    worker,
  });
}
const lastSeq = async (): Promise<number> =>
  done(200, await tenant.request<{ seq: number }>('GET', '/events?since=999999')).seq;

/** The POSTs that take no key: login and upload, and a logout ends the session that it comes with. */
const excepted = ['admin.login', 'admin.logout', 'files.upload'];
const posts = apiRoutes.filter(({ method, operationId }) => method === 'POST' && !excepted.includes(operationId));

for (const route of posts) {
  t.test(titleOf(route), async (t) => {
    t.equal(route.idempotent, true, 'takes Idempotency-Key');

    await t.test(`${AT_ONCE} at once over two workers | exactly one does the work, all get its answer`, async (t) => {
      const call = callOf(route, await seedFor(route, tenant));
      const before = await lastSeq();
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => send(call, 'at-once', i % 2)));
      t.strictSame([...new Set(answers.map(({ status }) => status))], [firstSuccess(route)]);
      t.equal(new Set(answers.map(({ text }) => text)).size, 1, 'the same answer, byte by byte');
      t.equal(
        answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length,
        1,
        'all but one say Idempotent-Replayed',
      );
      t.ok(answers.every(({ headers }) => [null, 'true'].includes(headers.get('idempotent-replayed'))));
      // Rejecting a reported comment deletes it, and tells its author why.
      const events = route.path.endsWith('/reject') ? 2 : 1;
      t.ok((await lastSeq()) <= before + events, 'the events of one write, if any');
    });

    await t.test('replay | same status and body, quoted or bare, on any worker, whatever happened since', async (t) => {
      const seeds = await seedFor(route, tenant);
      const call = callOf(route, seeds);
      const first = await send(call, 'again');
      await tenant.request('DELETE', `/threads/${seeds['threadId']}`);
      for (const [key, worker] of [
        ['again', 1],
        ['"again"', 0],
      ] as const) {
        const replay = await send(call, key, worker);
        t.equal(replay.status, first.status);
        t.equal(replay.text, first.text);
        t.equal(replay.headers.get('idempotent-replayed'), 'true');
      }
    });

    // What a route without a body is sent is ignored.
    if (bodyOf(route) !== undefined)
      await t.test('another body | 409', async (t) => {
        const call = callOf(route, await seedFor(route, tenant));
        t.equal((await send(call, 'other')).status, firstSuccess(route));
        const changed = { ...call, body: { ...(call.body as object), more: 1 } };
        for (const worker of [0, 1]) {
          t.match(await send(changed, 'other', worker), {
            status: 409,
            json: { error: 'Idempotency-Key was used before with another body; send a new key with a new request' },
          });
        }
        t.equal(
          (await send({ ...call, body: `${JSON.stringify(call.body)} ` }, 'other')).status,
          409,
          'the bytes count, not what they mean',
        );
        t.equal((await send(call, 'other')).status, firstSuccess(route), 'the first can still be repeated');
      });

    if (bodyOf(route) !== undefined)
      await t.test('two bodies at once over two workers | one wins, the others get 409', async (t) => {
        const call = callOf(route, await seedFor(route, tenant));
        const bodies = Array.from({ length: 10 }, (_, i) => ({ ...(call.body as object), more: i % 2 }));
        const answers = await Promise.all(bodies.map((body, i) => send({ ...call, body }, 'rivals', (i >> 1) % 2)));
        t.equal(answers.filter(({ status }) => status === firstSuccess(route)).length, 5);
        t.equal(answers.filter(({ status }) => status === 409).length, 5);
      });

    await t.test('after 24 hours | anew', async (t) => {
      const seeds = await seedFor(route, tenant);
      const call = callOf(route, seeds);
      const first = await send(call, 'aged');
      service.clock.advance(DAY_MS - 1);
      t.equal((await send(call, 'aged')).headers.get('idempotent-replayed'), 'true', 'a millisecond before');
      service.clock.advance(1);
      // A slug is taken for longer than a day.
      const later = callOf(route, seeds);
      const anew = await send(later, 'aged', 1);
      t.ok(successes(route).includes(anew.status));
      t.equal(anew.headers.get('idempotent-replayed'), null);
      t.equal((await send(later, 'aged')).text, anew.text, 'and that is replayed from then on');
      t.type(first.text, 'string');
    });

    if (bodyOf(route)?.required !== undefined)
      await t.test('only 2xx is stored | a refusal is judged anew', async (t) => {
        const call = callOf(route, await seedFor(route, tenant));
        const broken = { ...call, body: {} };
        t.equal((await send(broken, 'refused')).status, 400);
        t.equal(
          (await send(call, 'refused')).status,
          firstSuccess(route),
          'so the key is still free, for another body too',
        );
      });

    await t.test('the key | 1 to 255 visible characters, quoted or bare', async (t) => {
      const seeds = await seedFor(route, tenant);
      for (const key of ['!', '~'.repeat(255), `"${'k'.repeat(255)}"`]) {
        t.ok(successes(route).includes((await send(callOf(route, seeds), key)).status), `${key.length} characters`);
      }
      const call = callOf(route, seeds);
      for (const key of ['', 'k'.repeat(256), 'a b', '""', '"a b"', 'käy']) {
        t.match(
          await send(call, key),
          { status: 400, json: { error: /^Idempotency-Key must be 1 to 255 visible ASCII characters/ } },
          `${key.slice(0, 10)} of ${key.length}`,
        );
      }
    });
  });
}

t.test('another credential | does its own work and never gets the answer of the first', async (t) => {
  const body = { role: 'moderator' };
  const path = '/users/svc/tokens';
  const sendAs = (key: string, worker: number): Promise<TestResponse<{ token: string }>> =>
    tenant.request('POST', path, { body, key, worker, headers: { 'Idempotency-Key': 'svc-token' } });
  const { value: confined } = await tenant.newKey({ rooms: 'a/*' });
  const { value: second } = await tenant.newKey({});
  const own = new Map<string, string>();
  for (const key of [tenant.secretKey, confined, second]) {
    const first = await sendAs(key, 0);
    t.equal(first.status, 201);
    t.equal(first.headers.get('idempotent-replayed'), null);
    own.set(key, first.text);
  }
  t.strictSame(roomsOf(done(201, await sendAs(tenant.secretKey, 1)).token), undefined);
  t.strictSame(roomsOf(done(201, await sendAs(confined, 1)).token), ['a/*'], 'a confined key makes a confined token');
  for (const [key, text] of own) {
    const replay = await sendAs(key, 1);
    t.equal(replay.text, text, 'each gets its own answer again');
    t.equal(replay.headers.get('idempotent-replayed'), 'true');
  }
});

t.test('scope | environment, credential, method, path and key', async (t) => {
  const { id } = await addThread(tenant, 'scope');
  const one: RouteCall = { method: 'POST', path: `/threads/${id}/comments`, body: { userId: 'ann', body: 'Hi' } };
  const answers = [
    await send(one, 'scoped'),
    await send({ ...one, path: '/rooms/scope/threads' }, 'scoped'),
    await send({ ...one, path: '/rooms/scope2/threads' }, 'scoped'),
  ];
  t.strictSame(
    answers.map(({ status, headers }) => [status, headers.get('idempotent-replayed')]),
    [
      [201, null],
      [201, null],
      [201, null],
    ],
  );
  const withQuery = await send({ ...one, path: `${one.path}?x=1` }, 'scoped');
  t.equal(withQuery.headers.get('idempotent-replayed'), 'true', 'the query is no part of it');
  t.equal(withQuery.text, answers[0]?.text);
});

t.test('with an id of the client’s choice | the replay is the answer, not a conflict', async (t) => {
  const { id } = await addThread(tenant, 'own');
  const call: RouteCall = {
    method: 'POST',
    path: `/threads/${id}/comments`,
    body: { id: 'own-comment', userId: 'ann', body: 'Hi' },
  };
  const first = await send(call, 'own');
  t.equal(first.status, 201);
  t.equal((await send(call, 'own')).text, first.text);
  t.equal((await send(call, 'another')).status, 409);
});

t.test('the replay is for who may do the work', async (t) => {
  const { id } = await addThread(tenant, 'secret');
  const path = `/threads/${id}/comments`;
  const options = { body: { userId: 'ann', body: 'Hi' }, headers: { 'Idempotency-Key': 'private' } };
  t.equal((await tenant.request('POST', path, options)).status, 201);
  for (const scope of [{ scope: 'read' }, { rooms: 'elsewhere' }] as const) {
    const { value } = await tenant.newKey(scope);
    t.equal((await tenant.request('POST', path, { ...options, key: value })).status, 403, JSON.stringify(scope));
  }
});

t.test('methods that are idempotent by themselves ignore it', async (t) => {
  const call: RouteCall = { method: 'PUT', path: '/users/ann', body: { name: 'Ann' } };
  t.equal((await send(call, 'put')).status, 200);
  const { status, headers } = await send({ ...call, body: { name: 'Anna' } }, 'put');
  t.equal(status, 200);
  t.equal(headers.get('idempotent-replayed'), null);
  t.match(done(200, await tenant.request('GET', '/users/ann')), { user: { name: 'Anna' } });
});

/** The claim `rooms` of a token. */
function roomsOf(token: string): unknown {
  const [, payload = ''] = token.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { rooms?: unknown }).rooms;
}

/** What the first of equal requests is answered with. */
function firstSuccess(route: Route): number {
  return Math.max(...successes(route));
}
