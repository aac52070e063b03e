import t from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { callOf, seedFor, type Seeds, successes, titleOf } from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import { addUser, done } from '../helpers/writer.ts';

// What each kind of secret key may do on each route that takes one. A route that is in no line of this table fails.

const service = await startService(t);
const tenant = await service.tenant('key-rights');

/** The keys: `inside` is confined to the rooms that the request is about, `outside` to others. */
const keys = {
  full: tenant.secretKey,
  read: (await tenant.newKey({ scope: 'read' })).value,
  moderate: (await tenant.newKey({ scope: 'moderate' })).value,
  inside: (await tenant.newKey({ rooms: 'room of *' })).value,
  insideRead: (await tenant.newKey({ rooms: 'room of *', scope: 'read' })).value,
  outside: (await tenant.newKey({ rooms: 'elsewhere*' })).value,
} as const;
type KeyKind = keyof typeof keys;

/** The kinds that may; every other gets 403. */
const everybody: readonly KeyKind[] = ['full', 'read', 'moderate', 'inside', 'insideRead', 'outside'];
const readers: readonly KeyKind[] = ['full', 'read', 'moderate', 'inside', 'insideRead'];
const writers: readonly KeyKind[] = ['full', 'inside'];
const moderators: readonly KeyKind[] = ['full', 'moderate', 'inside'];

const rights: Readonly<Record<string, readonly KeyKind[]>> = {
  'threads.list': readers,
  'threads.create': writers,
  'threads.get': readers,
  'threads.update': moderators,
  'threads.delete': moderators,
  'comments.list': readers,
  'comments.get': readers,
  'comments.create': writers,
  'comments.update': moderators,
  'comments.delete': moderators,
  'comments.report': moderators,
  'users.listHeld': everybody,
  // A confined key sees the items of its rooms, and finds no other.
  'moderation.list': ['full', 'moderate', 'inside', 'outside'],
  'moderation.get': moderators,
  'moderation.approve': moderators,
  'moderation.reject': moderators,
  'reactions.create': writers,
  'reactions.delete': moderators,
  // Lists and the log leave out what a confined key does not reach.
  'rooms.list': everybody,
  'events.list': everybody,
  'rooms.get': readers,
  'rooms.presence': readers,
  'rooms.update': writers,
  'rooms.delete': moderators,
  // Users belong to no room: a confined key looks one up, and makes authors and tokens for its rooms.
  'users.list': ['full', 'read', 'moderate'],
  'users.get': everybody,
  'users.lookup': everybody,
  'users.put': ['full', 'inside', 'outside'],
  'users.delete': ['full'],
  'users.createToken': ['full', 'inside', 'outside'],
  // What belongs to a user is in no room either; the list leaves out other rooms.
  'notifications.list': everybody,
  'notifications.read': ['full', 'inside', 'outside'],
  // Settings concern all rooms.
  'notificationSettings.get': ['full', 'read', 'moderate'],
  'notificationSettings.put': ['full'],
  'subscriptions.get': readers,
  'subscriptions.change': writers,
  'p2pState.get': readers,
  'p2pState.put': writers,
  'p2pState.clear': writers,
  'turnCredentials.get': everybody,
};

for (const route of apiRoutes.filter(({ credential }) => credential === 'secret' || credential === 'either')) {
  t.test(titleOf(route), async (t) => {
    const may = rights[route.operationId];
    if (may === undefined) return t.fail(`say in the table of this file which keys may call ${route.operationId}`);
    let seeds: Seeds = await seedFor(route, tenant);
    for (const kind of everybody) {
      const { method, path, body, headers = {} } = callOf(route, seeds);
      const { status, text } = await tenant.request(method, path, { body, headers, key: keys[kind] });
      const expected = may.includes(kind) ? successes(route) : [403];
      t.ok(expected.includes(status), `${kind} | ${expected.join(' or ')}, got ${status} ${text.slice(0, 200)}`);
      if (status < 300) seeds = await seedFor(route, tenant);
    }
  });
}

t.test('a key of the scope moderate | resolves and edits threads, and does not move them', async (t) => {
  const { threadId } = await seedFor({ path: '/threads/:threadId' }, tenant);
  const patch = (key: string, body: object) =>
    tenant.request<{ error: string }>('PATCH', `/threads/${threadId}`, { body, key });
  t.equal((await patch(keys.moderate, { resolved: true, metadata: { checked: true } })).status, 200);
  const refused = await patch(keys.moderate, { resolved: false, position: { x: 0.5, y: 0.5 } });
  t.strictSame(
    [refused.status, refused.json.error],
    [403, 'The key has the scope moderate: setting position needs a key of the scope full'],
  );
  t.match(done(200, await tenant.request('GET', `/threads/${threadId}`)), {
    thread: { resolved: true, position: null },
  });
  t.equal((await patch(keys.inside, { position: { x: 0.5, y: 0.5 } })).status, 200);
});

t.test('every line of the table is a route', async (t) => {
  t.strictSame(
    Object.keys(rights).filter((id) => !apiRoutes.some(({ operationId }) => operationId === id)),
    [],
  );
});

t.test('a confined key | sees a user as browsers do, and changes none that exists', async (t) => {
  await addUser(tenant, 'bob', { name: 'Bob', email: 'bob@example.com' });
  const asConfined = <T = { user: Record<string, unknown> }>(method: string, path: string, body?: unknown) =>
    tenant.request<T>(method, path, { body, key: keys.inside });

  await tenant.join({ userId: 'bob' });
  t.match(done(200, await tenant.request('GET', '/users/bob')), { user: { online: true, lastSeenAt: String } });
  done(200, await tenant.request('PUT', '/users/bob', { body: { metadata: { plan: 'gold' } } }));
  const seen = done(200, await asConfined('GET', '/users/bob')).user;
  t.notHas(seen, { email: String });
  t.match(seen, { name: 'Bob', kind: 'user', online: false, firstSeenAt: null, lastSeenAt: null });
  t.strictSame(seen['metadata'], {});
  for (const kind of ['inside', 'insideRead', 'outside'] as const) {
    t.notMatch((await tenant.request('GET', '/users/bob', { key: keys[kind] })).text, /bob@example/, kind);
    t.equal((await tenant.request('GET', '/users?q=bob', { key: keys[kind] })).status, 403, kind);
  }
  for (const body of [
    { name: 'Eve' },
    { avatarUrl: 'https://example.com/eve.png' },
    { kind: 'bot' },
    { metadata: { admin: true } },
    { email: 'eve@example.com' },
    { email: 'bob@example.com' },
  ]) {
    const { status, json } = await asConfined<{ error: string }>('PUT', '/users/bob', body);
    t.equal(status, 403, JSON.stringify(body));
    t.equal(json.error, 'The key is confined to rooms: it creates users, and does not change one that exists');
  }
  t.equal((await asConfined('DELETE', '/users/bob')).status, 403);
  t.match(
    done(200, await tenant.request('GET', '/users/bob')),
    { user: { name: 'Bob', email: 'bob@example.com', kind: 'user' } },
    'Bob is as he was',
  );

  const bot = { name: 'CI', kind: 'bot', email: 'ci@example.com', metadata: { team: 'red' } };
  t.match(
    done(200, await asConfined('PUT', '/users/ci-bot', bot)).user,
    { name: 'CI', kind: 'bot', metadata: { team: 'red' } },
    'it makes an author',
  );
  t.match(
    done(200, await asConfined('PUT', '/users/ci-bot', { name: 'CI', kind: 'bot' })).user,
    { name: 'CI' },
    'and may say the same again',
  );
});

t.test('a confined key | makes tokens that reach its rooms alone and rename nobody', async (t) => {
  await addUser(tenant, 'bea', { name: 'Bea' });
  const tokenFor = (userId: string, body: object) =>
    tenant.request<{ token: string }>('POST', `/users/${userId}/tokens`, { body, key: keys.inside });
  for (const body of [
    { name: 'Eve' },
    { avatarUrl: 'https://example.com/eve.png' },
    { rooms: ['elsewhere'] },
    { rooms: ['*'] },
    { rooms: ['room*'] },
  ]) {
    t.equal((await tokenFor('bea', body)).status, 403, JSON.stringify(body));
  }
  t.strictSame(claimsOf(done(201, await tokenFor('bea', {})).token)['rooms'], ['room of *']);
  t.strictSame(claimsOf(done(201, await tokenFor('bea', { rooms: ['room of 1'] })).token)['rooms'], ['room of 1']);

  const { token } = done(201, await tokenFor('newcomer', { name: 'First' }));
  await tenant.request('PUT', '/users/newcomer', { body: { name: 'Second' } });
  const headers = { 'X-Service-Key': tenant.publishableKey, 'X-Service-Token': token };
  t.equal((await tenant.request('GET', '/rooms/room%20of%201/p2p/state', { key: null, headers })).status, 200);
  t.match(
    done(200, await tenant.request('GET', '/users/newcomer')),
    { user: { name: 'Second', lastSeenAt: String } },
    'a later name stays',
  );
});

t.test('a confined key | reads no events of users', async (t) => {
  await addUser(tenant, 'carol', { name: 'Carol' });
  const all = done(
    200,
    await tenant.request<{ items: { type: string; roomId?: string }[] }>('GET', '/events?limit=1000', {
      key: keys.inside,
    }),
  ).items;
  t.ok(all.length > 0, 'it reads those of its rooms');
  t.ok(all.every(({ roomId }) => roomId?.startsWith('room of ') === true));
});

function claimsOf(token: string): Record<string, unknown> {
  const [, payload = ''] = token.split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
}
