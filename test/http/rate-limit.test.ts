import t from 'tap';
import { MemoryStore } from '../doubles/memory-store.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { startTestServer, TEST_START } from '../helpers/http.ts';
import { newShared } from '../helpers/new-shared.ts';

const limited = { 'rateLimit.exempt': '' };
const behindProxy = { ...limited, trustProxy: '127.0.0.1' };

t.test('the limit applies across all workers, in any minute', async (t) => {
  const clock = new ManualClock(TEST_START);
  const store = new MemoryStore();
  const shared = newShared(clock);
  t.teardown(() => store.close());
  const one = await startTestServer(t, { clock, store, shared, flags: { ...limited, 'rateLimit.perMinute': '10' } });
  const two = await startTestServer(t, {
    clock,
    store,
    shared,
    environment: one.environment,
    flags: { ...limited, 'rateLimit.perMinute': '10' },
  });
  const ask = (i: number) => (i % 2 === 0 ? one : two).request('GET', '/rooms');

  for (let i = 0; i < 10; i++) {
    const { status, headers } = await ask(i);
    t.equal(status, 200);
    t.equal(headers.get('ratelimit'), `"default";r=${9 - i};t=${60 - i}`);
    t.equal(headers.get('ratelimit-policy'), '"default";q=10;w=60');
    clock.advance(1000);
  }
  const refused = await ask(0);
  t.equal(refused.status, 429);
  t.equal(refused.text, '{"error":"Rate limit exceeded. Try again in 50s"}');
  t.equal(refused.headers.get('retry-after'), '50');
  t.equal(refused.headers.get('ratelimit'), '"default";r=0;t=50');
  t.equal(refused.headers.get('x-error-code'), 'rate_limited');
  clock.advance(49_999);
  t.equal((await ask(1)).status, 429);
  clock.advance(1);
  t.equal((await ask(0)).status, 200);
  t.equal((await ask(1)).status, 429, 'only one hit has left the window');
});

t.test('refusals count too, and requests outside the API do not', async (t) => {
  const server = await startTestServer(t, { flags: { ...limited, 'rateLimit.perMinute': '4' } });
  await server.request('GET', '//livez');
  await server.request('GET', '//nowhere');
  t.equal((await server.request('GET', '/nowhere')).status, 404);
  t.equal((await server.request('GET', '/rooms', { key: null })).status, 401);
  t.equal((await server.request('GET', '/openapi.json', { key: null })).status, 200);
  t.equal((await server.request('POST', '/rooms/r/threads', { body: '{' })).status, 400);
  t.equal((await server.request('GET', '/rooms')).status, 429);
  t.equal((await server.request('GET', '//livez')).status, 200);
});

t.test('clients behind a proxy are distinguished, and cannot choose their address', async (t) => {
  const server = await startTestServer(t, { flags: { ...behindProxy, 'rateLimit.perMinute': '1' } });
  const from = async (forwarded: string) =>
    (await server.request('GET', '/rooms', { headers: { 'X-Forwarded-For': forwarded } })).status;
  t.equal(await from('1.1.1.1'), 200);
  t.equal(await from('2.2.2.2'), 200);
  t.equal(await from('1.1.1.1'), 429);
  t.equal(await from('9.9.9.9, 1.1.1.1'), 429, 'what is left of the last hop is hearsay');
  t.equal(await from('::ffff:1.1.1.1'), 429);
  t.equal(await from('2001:db8:1:2::1'), 200);
  t.equal(await from('2001:db8:1:2:ffff::9'), 429, 'the same /64');
  t.equal(await from('2001:db8:1:3::1'), 200);
});

t.test('without a trusted proxy X-Forwarded-For is ignored', async (t) => {
  const server = await startTestServer(t, { flags: { ...limited, 'rateLimit.perMinute': '1' } });
  const from = async (forwarded: string) =>
    (await server.request('GET', '/rooms', { headers: { 'X-Forwarded-For': forwarded } })).status;
  t.equal(await from('1.1.1.1'), 200);
  t.equal(await from('2.2.2.2'), 429);
});

t.test('exempt networks are not limited and get no rate headers', async (t) => {
  const server = await startTestServer(t, {
    flags: { ...behindProxy, 'rateLimit.perMinute': '1', 'rateLimit.exempt': '10.0.0.0/8' },
  });
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await server.request('GET', '/rooms', { headers: { 'X-Forwarded-For': '10.1.2.3' } });
    t.equal(status, 200);
    t.equal(headers.get('ratelimit'), null);
    t.equal(headers.get('ratelimit-policy'), null);
  }
});

t.test('requests count against a key that has its own limit instead of the address', async (t) => {
  const server = await startTestServer(t, { flags: { ...limited, 'rateLimit.perMinute': '1' } });
  const three = await server.newKey({ rateLimit: 3 });
  const unlimited = await server.newKey({ rateLimit: 'unlimited' });
  const statusWith = async (key?: string) =>
    (await server.request('GET', '/rooms', key === undefined ? {} : { key })).status;
  t.equal(await statusWith(), 200);
  t.equal(await statusWith(), 429, 'the address is used up');
  const first = await server.request('GET', '/rooms', { key: three });
  t.equal(first.headers.get('ratelimit-policy'), '"default";q=3;w=60');
  t.equal(first.headers.get('ratelimit'), '"default";r=2;t=60');
  t.strictSame([await statusWith(three), await statusWith(three), await statusWith(three)], [200, 200, 429]);
  for (let i = 0; i < 5; i++) t.equal(await statusWith(unlimited), 200);
});
