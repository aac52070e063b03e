import t from 'tap';
import { adminSession } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { addComment, addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Limits (docs/api.md, "Limits"). Of fields: bodies.test.ts. Of uploads and files: 04-upload-and-files.test.ts.

const behindProxy = { 'rateLimit.exempt': '', trustProxy: '127.0.0.0/8' };

t.test('Request rate | 100 requests per minute per IP address | all API routes; excess gives 429', async (t) => {
  const service = await startService(t, { workers: 2, flags: behindProxy });
  const tenant = await service.tenant('rate');
  const ask = (from: string, i = 0, path = '/rooms', key?: null) =>
    tenant.request<Failure>('GET', path, {
      worker: i % 2,
      headers: { 'X-Forwarded-For': from },
      ...(key === null ? { key } : {}),
    });

  const answers = await Promise.all(Array.from({ length: 150 }, (_, i) => ask('1.1.1.1', i)));
  t.equal(answers.filter(({ status }) => status === 200).length, 100, 'exactly, over all workers');
  t.equal(answers.filter(({ status }) => status === 429).length, 50);
  const refused = await ask('1.1.1.1');
  t.strictSame(refused.json, { error: 'Rate limit exceeded. Try again in 60s' });
  t.equal(refused.headers.get('retry-after'), '60');
  t.equal((await ask('2.2.2.2')).status, 200, 'another address has its own');

  await t.test('headers on every answer', async (t) => {
    for (const [path, status] of [
      ['/rooms', 200],
      ['/nowhere', 404],
      ['/threads/unknown', 404],
      ['/rooms?limit=x', 400],
    ] as const) {
      const answer = await ask('3.3.3.3', 0, path);
      t.equal(answer.status, status);
      t.equal(answer.headers.get('ratelimit-policy'), '"default";q=100;w=60');
      t.match(answer.headers.get('ratelimit'), /^"default";r=\d+;t=60$/);
    }
    t.equal((await ask('3.3.3.3')).headers.get('ratelimit'), '"default";r=95;t=60');
    t.equal(refused.headers.get('ratelimit'), '"default";r=0;t=60');
  });

  await t.test('a sliding window: at most 100 in any 60 s, refused ones not counted', async (t) => {
    const times: number[] = [];
    for (let second = 0; second < 150; second += 3) {
      const round = await Promise.all(Array.from({ length: 9 }, (_, i) => ask('4.4.4.4', i)));
      times.push(...round.filter(({ status }) => status === 200).map(() => second));
      service.clock.advance(3000);
    }
    for (let start = 0; start < 150; start += 3)
      t.ok(times.filter((at) => at >= start && at < start + 60).length <= 100, `from second ${start} on`);
    t.ok(times.length >= 200, 'and what leaves the window is room at once');
  });

  await t.test('401, 404 and the WebSocket upgrade count; OPTIONS, health and metrics don’t', async (t) => {
    for (let i = 0; i < 98; i++) await ask('5.5.5.5', i, i % 2 === 0 ? '/nowhere' : '/rooms', null);
    const socket = tenant.open({
      headers: { 'X-Forwarded-For': '5.5.5.5', ...(await tenant.userHeaders({ userId: 'ann' })) },
    });
    await socket.frame('welcome');
    for (const path of ['//livez', '//readyz', '//healthz']) t.equal((await ask('5.5.5.5', 0, path)).status, 200);
    await tenant.request('OPTIONS', '/turn-credentials', { headers: { 'X-Forwarded-For': '5.5.5.5' } });
    t.equal((await ask('5.5.5.5')).status, 200, 'the hundredth');
    t.equal((await ask('5.5.5.5')).status, 429);
    const late = tenant.open({
      headers: { 'X-Forwarded-For': '5.5.5.5', ...(await tenant.userHeaders({ userId: 'ann' })) },
    });
    t.match(await late.refused, { status: 429, body: { error: /^Rate limit exceeded/ } });
  });

  await t.test(
    'IPv6 is counted by its /64, IPv4-mapped as IPv4; who is not a proxy of ours is not believed',
    async (t) => {
      for (let i = 0; i < 100; i++) await ask(`2001:db8:0:1::${i.toString(16)}`, i);
      t.equal((await ask('2001:db8:0:1:ffff::1')).status, 429);
      t.equal((await ask('2001:db8:0:2::1')).status, 200);
      t.equal((await ask('::ffff:1.1.1.1')).status, 200, 'a minute has gone by for 1.1.1.1');
      t.equal((await ask('9.9.9.9, 2001:db8:0:1::1')).status, 429, 'the last hop counts');
    },
  );

  await t.test('exemptions by the operator | per key | counted on the key, not on the address', async (t) => {
    const own = (await tenant.newKey({ rateLimit: 2 })).value;
    const unlimited = (await tenant.newKey({ rateLimit: 'unlimited' })).value;
    const by = async (key: string, from: string): Promise<number> =>
      (await tenant.request('GET', '/rooms', { key, headers: { 'X-Forwarded-For': from } })).status;
    t.strictSame([await by(own, '6.6.6.1'), await by(own, '6.6.6.2'), await by(own, '6.6.6.3')], [200, 200, 429]);
    const many = await Promise.all(Array.from({ length: 120 }, () => by(unlimited, '6.6.6.4')));
    t.ok(many.every((status) => status === 200));
  });
});

t.test('Request rate | rateLimit.perMinute and rateLimit.exempt', async (t) => {
  const service = await startService(t, {
    flags: { trustProxy: '127.0.0.0/8', 'rateLimit.perMinute': '3', 'rateLimit.exempt': '10.0.0.0/8' },
  });
  const tenant = await service.tenant('rate-config');
  const ask = async (from: string): Promise<number> =>
    (await tenant.request('GET', '/rooms', { headers: { 'X-Forwarded-For': from } })).status;
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push(await ask('1.1.1.1'), await ask('10.1.2.3'));
  t.strictSame(statuses, [200, 200, 200, 200, 200, 200, 429, 200]);
});

t.test('Login rate | 5 requests per minute | POST /admin/auth/login', async (t) => {
  const service = await startService(t, { workers: 2, flags: { trustProxy: '127.0.0.0/8' } });
  const tenant = await service.tenant('login');
  await adminSession(service);
  const login = (from: string, body: unknown, worker = 0) =>
    tenant.request<Failure>('POST', '/admin/auth/login', {
      key: null,
      body,
      worker,
      headers: { 'X-Forwarded-For': from },
    });
  for (let i = 0; i < 5; i++) {
    const answer = await login('1.1.1.1', {}, i % 2);
    t.equal(answer.status, 400, 'every request counts');
    t.equal(answer.headers.get('ratelimit-policy'), '"login";q=5;w=60');
    t.equal(answer.headers.get('ratelimit'), `"login";r=${4 - i};t=60`);
  }
  const refused = await login('1.1.1.1', {});
  t.equal(refused.status, 429);
  t.match(refused.json.error, /^Rate limit exceeded\. Try again in 60s$/);
  t.equal(refused.headers.get('retry-after'), '60');
  t.equal((await login('2.2.2.2', {})).status, 400, 'per address');
  service.clock.advance(60_000);
  t.equal((await login('1.1.1.1', {})).status, 400, 'a minute later');
});

t.test('Position coordinates | x and y in range 0 to 1 | create thread', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('coordinates');
  await addUser(tenant, 'ann');
  for (const value of [0, 1, 0.5, 5e-324, 1 - Number.EPSILON, -0]) {
    const { position } = await addThread(tenant, 'page', { position: { x: value, y: value } });
    t.strictSame(position, { x: value === 0 ? 0 : value, y: value === 0 ? 0 : value });
  }
  for (const axis of ['x', 'y']) {
    for (const [value, message] of [
      ['-1e-9', 'be between 0 and 1'],
      ['1.0000001', 'be between 0 and 1'],
      ['100', 'be between 0 and 1'],
      ['1e400', 'be a number'],
      ['"0.5"', 'be a number'],
      ['null', 'be a number'],
      ['true', 'be a number'],
      ['[0]', 'be a number'],
    ] as const) {
      const other = axis === 'x' ? 'y' : 'x';
      const answer = await tenant.request<Failure>('POST', '/rooms/page/threads', {
        body: `{"userId":"ann","body":"Hi","position":{"${axis}":${value},"${other}":0}}`,
      });
      t.equal(answer.status, 400, `${axis} ${value}`);
      t.ok(answer.json.error.startsWith(`position.${axis} must ${message}, not `), answer.json.error);
    }
  }
});

t.test('distinct emoji per comment | 20', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('emoji');
  for (const user of ['ann', 'bob']) await addUser(tenant, user);
  const { comments } = await addThread(tenant, 'page');
  const react = (userId: string, emoji: string) =>
    tenant.request<Failure>('POST', `/comments/${comments[0]?.id}/reactions`, { body: { userId, emoji } });
  for (let i = 0; i < 20; i++) t.equal((await react('ann', `:emoji_${i}:`)).status, 201);
  const refused = await react('ann', ':one_more:');
  t.equal(refused.status, 400);
  t.equal(refused.json.error, 'A comment takes at most 20 different emoji');
  t.equal((await react('ann', ':emoji_3:')).status, 200);
  t.equal((await react('bob', ':emoji_3:')).status, 201, 'another person may join in');
});

t.test('limit of a list | 1000 | larger counts as 1000', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('thousand');
  await addUser(tenant, 'ann');
  const { id } = await addThread(tenant, 'page');
  // Not all at once: each would have a connection of its own, which idles until its time-out.
  for (let from = 0; from < 1_004; from += 251)
    await Promise.all(Array.from({ length: 251 }, (_, i) => addComment(tenant, id, { body: `No ${from + i}` })));
  const list = async (query: string) =>
    done(
      200,
      await tenant.request<{ items: unknown[]; nextCursor?: string }>('GET', `/threads/${id}/comments${query}`),
    );
  t.equal((await list('')).items.length, 1005, 'all without a limit');
  const page = await list('?limit=5000');
  t.equal(page.items.length, 1000);
  t.equal((await list(`?limit=5000&cursor=${page.nextCursor}`)).items.length, 5);
});
