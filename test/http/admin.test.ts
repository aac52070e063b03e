import { hash, scryptSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { MemoryDatabase } from '../doubles/memory-database.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { createAdmin, listAdmins, removeAdmin, setAdminPassword } from '../../src/domain/admins/admins.ts';
import { sweepAdminSessions } from '../../src/domain/admins/admin-sessions.ts';
import { writeKeyUses } from '../../src/domain/access/key-uses.ts';
import { ADMIN_FAILURES, ADMIN_SESSIONS, ADMINS } from '../../src/domain/records/partitions.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import type { StoredAdmin } from '../../src/model/environments/admin.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { Store } from '../../src/ports/store.ts';
import {
  startTestServer,
  TEST_START,
  type TestResponse,
  type TestServer,
  type TestServerOptions,
} from '../helpers/http.ts';

const PASSWORD = 'correct horse battery';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Session {
  readonly token: string;
  readonly expiresAt: string;
  readonly admin: { readonly id: string; readonly email: string };
}
interface Failure {
  readonly error: string;
}
interface Listed {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

/** A server with an admin whose password hash is cheap, as if the cost parameters had been raised since. */
async function startWithAdmin(
  t: Test,
  options: TestServerOptions = {},
): Promise<TestServer & { readonly clock: ManualClock }> {
  const clock = new ManualClock(TEST_START);
  const server = await startTestServer(t, { clock, flags: { trustProxy: '127.0.0.1' }, ...options });
  await createAdmin(server.ctx, 'Ops@Example.com', PASSWORD);
  await cheapen(server);
  return { ...server, clock };
}

async function cheapen({ ctx }: TestServer): Promise<void> {
  const [stored] = await ctx.store.range(ADMINS);
  if (stored === undefined) throw new Error('there is no admin');
  const salt = Buffer.alloc(16, 7);
  const key = scryptSync(PASSWORD, salt, 32, { N: 2 ** 3, r: 8, p: 1 });
  const text = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');
  const cheap: StoredAdmin = {
    ...(JSON.parse(stored.value) as StoredAdmin),
    passwordHash: `$scrypt$ln=3,r=8,p=1$${text(salt)}$${text(key)}`,
  };
  await ctx.store.transact(async (tx) => tx.put(ADMINS, stored.key, JSON.stringify(cheap)));
}

/** A store whose reads of a partition wait until they are released. */
function heldReads(store: Store, partition: string): { store: Store; release: () => void } {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const get = async (from: string, key: string): Promise<string | undefined> => {
    if (from === partition) await released;
    return store.get(from, key);
  };
  const proxy = new Proxy(store, {
    get: (target, name) => {
      if (name === 'get') return get;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { store: proxy, release: () => release() };
}

let addresses = 0;

/** Logs in from a new address each time, unless one is given, so that the limit per address is not reached. */
function login<T = Session>(
  server: TestServer,
  body: unknown = { email: 'ops@example.com', password: PASSWORD },
  from = `10.1.0.${++addresses}`,
): Promise<TestResponse<T>> {
  return server.request<T>('POST', '/admin/auth/login', { body, key: null, headers: { 'X-Forwarded-For': from } });
}

t.test('an admin can read while the disk is full', async (t) => {
  const database = new MemoryDatabase();
  const server = await startWithAdmin(t, { store: new MemoryStore(database) });
  const { token } = (await login(server)).json;
  server.clock.advance(2 * MINUTE);
  database.full = true;
  t.equal((await server.request('GET', '/admin/auth/me', { key: token })).status, 200);
  t.match(await server.request('POST', '/admin/auth/logout', { key: token }), {
    status: 500,
    json: { error: /disk is full/ },
  });
});

t.test('a login returns a session that is valid on /admin only, and can be ended', async (t) => {
  const server = await startWithAdmin(t, { realPasswords: true, flags: { trustProxy: '127.0.0.1' } });
  const { status, json, headers } = await login(server, { email: ' OPS@example.com', password: PASSWORD });
  t.equal(status, 200);
  t.strictSame(Object.keys(json), ['token', 'expiresAt', 'admin']);
  t.match(json.token, /^adm_[A-Za-z0-9_-]{43}$/);
  t.equal(json.expiresAt, new Date(TEST_START + 12 * HOUR).toISOString());
  t.match(json.admin, {
    id: /^admin_/,
    email: 'ops@example.com',
    role: 'admin',
    createdAt: new Date(TEST_START).toISOString(),
  });
  t.equal(headers.get('cache-control'), 'no-store');
  t.equal(headers.get('ratelimit-policy'), '"login";q=5;w=60');

  const key = json.token;
  t.strictSame((await server.request('GET', '/admin/auth/me', { key })).json, { admin: json.admin });
  const elsewhere = await server.request('GET', '/rooms', { key });
  t.equal(elsewhere.status, 401);
  t.equal(elsewhere.headers.get('x-error-code'), 'invalid_key');
  const withKey = await server.request<Failure>('GET', '/admin/auth/me');
  t.equal(withKey.status, 401, 'a secret key is not valid on /admin');
  t.equal(withKey.headers.get('x-error-code'), 'invalid_key');

  const [session] = await server.ctx.store.range(ADMIN_SESSIONS);
  t.notOk(JSON.stringify(session).includes(key.slice(4)), 'the token itself is not stored');
  t.strictSame((await server.request('POST', '/admin/auth/logout', { key })).json, { deleted: true });
  const ended = await server.request<Failure>('GET', '/admin/auth/me', { key });
  t.equal(ended.status, 401);
  t.equal(ended.headers.get('x-error-code'), 'invalid_session');
  t.strictSame(ended.json, { error: 'The session is unknown or has ended: log in again' });

  const rehashed = JSON.parse((await server.ctx.store.range(ADMINS))[0]?.value ?? '') as StoredAdmin;
  t.match(
    rehashed.passwordHash,
    /^\$scrypt\$ln=17,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/,
    'a cheap hash is replaced',
  );
  t.equal((await login(server)).status, 200, 'and belongs to the same password');
});

t.test('every failed login gets the same answer', async (t) => {
  const server = await startWithAdmin(t);
  for (const body of [
    { email: 'ops@example.com', password: 'wrong horse battery' },
    { email: 'nobody@example.com', password: PASSWORD },
    { email: 'no address', password: 'x' },
  ]) {
    const { status, json, headers } = await login<Failure>(server, body);
    t.equal(status, 401);
    t.strictSame(json, { error: 'Invalid email or password' });
    t.equal(headers.get('x-error-code'), 'invalid_login');
  }
});

t.test('a login without its fields is refused with 400 and not counted as a failure', async (t) => {
  const server = await startWithAdmin(t);
  const cases: [body: unknown, error: RegExp][] = [
    [{}, /^email is required$/],
    [{ email: 'ops@example.com' }, /^password is required$/],
    [{ email: 7, password: PASSWORD }, /^email must be a string(?:, not .+)?$/],
    [{ email: 'ops@example.com', password: null }, /^password must be a string(?:, not .+)?$/],
    [{ email: 'ops@example.com', password: '' }, /^password must be 1 to 1024 characters(?:, not .+)?$/],
    [{ email: 'ops@example.com', password: 'x'.repeat(1025) }, /^password must be 1 to 1024 characters(?:, not .+)?$/],
    [[], /must be a JSON object/],
  ];
  for (const [body, error] of cases) {
    const { status, json } = await login<Failure>(server, body);
    t.equal(status, 400);
    t.match(json.error, error);
  }
  t.strictSame(await server.ctx.store.range(ADMIN_FAILURES), []);
});

t.test('an address may log in five times per minute, with no exemptions', async (t) => {
  const server = await startWithAdmin(t, { flags: { trustProxy: '127.0.0.1', 'rateLimit.exempt': '10.0.0.0/8' } });
  const from = '10.9.9.9';
  for (let i = 0; i < 5; i++) {
    const { status, headers } = await login<Failure>(server, {}, from);
    t.equal(status, 400);
    t.equal(headers.get('ratelimit'), `"login";r=${4 - i};t=60`);
  }
  const refused = await login<Failure>(server, undefined, from);
  t.equal(refused.status, 429, 'before the password is checked');
  t.equal(refused.headers.get('retry-after'), '60');
  t.equal(refused.headers.get('ratelimit-policy'), '"login";q=5;w=60');
  t.strictSame(refused.json, { error: 'Rate limit exceeded. Try again in 60s' });
  t.equal((await login<Failure>(server, {}, '10.9.9.8')).status, 400, 'another address');
  const elsewhere = await server.request('GET', '/openapi.json', {
    key: null,
    headers: { 'X-Forwarded-For': '11.9.9.9' },
  });
  t.equal(elsewhere.headers.get('ratelimit'), '"default";r=99;t=60', 'a separate window');
  server.clock.advance(MINUTE);
  t.equal((await login<Failure>(server, {}, from)).status, 400);
});

t.test('twenty failures in an hour lock an account, whether it exists or not', async (t) => {
  const server = await startWithAdmin(t);
  const fail = async (email: string): Promise<void> => {
    const key = hash('sha256', email, 'base64url');
    const times = Array.from({ length: 19 }, (_, i) => TEST_START - 30 * MINUTE + i);
    await server.ctx.store.transact(async (tx) => tx.put(ADMIN_FAILURES, key, JSON.stringify(times)));
  };
  for (const email of ['ops@example.com', 'nobody@example.com']) {
    await fail(email);
    t.equal(
      (await login<Failure>(server, { email, password: 'wrong horse battery' })).status,
      401,
      `${email}: the twentieth`,
    );
    const shut = await login<Failure>(server, { email, password: PASSWORD });
    t.equal(shut.status, 429, `${email}: even with the right password`);
    t.equal(shut.headers.get('retry-after'), '1800');
    t.match(shut.json.error, /^Too many failed logins for this account\. Try again in 1800s$/);
  }
  server.clock.advance(30 * MINUTE + 20);
  t.equal((await login(server)).status, 200, 'the oldest failure is more than an hour old');
  server.clock.advance(HOUR);
  await sweepAdminSessions(server.ctx);
  t.strictSame(await server.ctx.store.range(ADMIN_FAILURES), [], 'and all failures are removed');
});

t.test('the number of logins that wait is limited', async (t) => {
  const store = new MemoryStore();
  t.teardown(() => store.close());
  const held = heldReads(store, ADMIN_FAILURES);
  const server = await startTestServer(t, { store: held.store, flags: { trustProxy: '127.0.0.1' } });
  await createAdmin(server.ctx, 'ops@example.com', PASSWORD);
  await cheapen(server);
  const wrong = { email: 'ops@example.com', password: 'wrong horse battery' };
  const refusals: Failure[] = [];
  const answers = Array.from({ length: 14 }, async () => {
    const { status, json } = await login<Failure>(server, wrong);
    if (status === 429) refusals.push(json);
    if (refusals.length === 3) held.release();
    return status;
  });
  t.strictSame(
    (await Promise.all(answers)).toSorted((a, b) => a - b),
    [...Array.from({ length: 11 }, () => 401), 429, 429, 429],
    'one is checked and ten wait',
  );
  t.match(refusals[0], { error: 'Too many logins at once. Try again in 5s' });
});

t.test('a session ends after 2 hours without use, and after 12 hours anyway', async (t) => {
  const server = await startWithAdmin(t);
  const { token: key } = (await login(server)).json;
  const idle = (await login(server)).json.token;
  const works = async (token: string) => (await server.request('GET', '/admin/auth/me', { key: token })).status === 200;
  for (let hours = 0; hours < 11; hours++) {
    server.clock.advance(HOUR);
    t.ok(await works(key), `used each hour, after ${hours + 1}`);
    if (hours === 0) continue;
    t.notOk(await works(idle), 'not used for 2 hours');
  }
  server.clock.advance(HOUR - 1);
  t.ok(await works(key));
  await sweepAdminSessions(server.ctx);
  t.equal((await server.ctx.store.range(ADMIN_SESSIONS)).length, 1, 'the idle session is swept');
  server.clock.advance(1);
  t.notOk(await works(key));
});

t.test('another password or the removal of the admin ends every session', async (t) => {
  const server = await startWithAdmin(t);
  const { token: key } = (await login(server)).json;
  await setAdminPassword(server.ctx, 'ops@EXAMPLE.com', 'another long password');
  t.equal((await server.request('GET', '/admin/auth/me', { key })).status, 401);
  t.equal((await login(server)).status, 401, 'the old password');
  const renewed = await login(server, { email: 'ops@example.com', password: 'another long password' });
  t.equal(renewed.status, 200);
  await removeAdmin(server.ctx, 'ops@example.com');
  t.equal((await server.request('GET', '/admin/auth/me', { key: renewed.json.token })).status, 401);
  t.strictSame(await listAdmins(server.ctx), []);
});

t.test('passwords are compared in one form of Unicode', async (t) => {
  const server = await startTestServer(t, { flags: { trustProxy: '127.0.0.1' } });
  await createAdmin(server.ctx, 'a@example.com', 'Zoe\u0308 und ﬁsche');
  t.equal((await login(server, { email: 'a@example.com', password: 'Zo\u00eb und fische' })).status, 200);
  for (const [password, message] of [
    ['x'.repeat(11), /at least 12 characters/],
    ['é'.repeat(513), /at most 1024 bytes/],
  ] as const) {
    await t.rejects(createAdmin(server.ctx, 'b@example.com', password), { code: 'invalid_request', message });
  }
  await t.rejects(createAdmin(server.ctx, 'A@example.com', 'x'.repeat(12)), { code: 'email_taken' });
  await t.rejects(createAdmin(server.ctx, 'no address', 'x'.repeat(12)), {
    code: 'invalid_request',
    message: /email address/,
  });
});

t.test('environments and keys are managed by an admin', async (t) => {
  const server = await startWithAdmin(t);
  const { token } = (await login(server)).json;
  const ask = <T = unknown>(method: string, path: string, body?: unknown): Promise<TestResponse<T>> =>
    server.request<T>(method, `/admin${path}`, body === undefined ? { key: token } : { key: token, body });

  await t.test('environments are created, listed, read, changed and deleted', async (t) => {
    const made = await ask<{ environment: Environment; jwtSecret: string; jwtKid: string }>('POST', '/environments', {
      slug: 'staging',
      name: 'Staging',
    });
    t.equal(made.status, 201);
    t.match(made.json, {
      environment: { slug: 'staging', name: 'Staging', disabled: false },
      jwtSecret: /^.{43}$/,
      jwtKid: /^kid_/,
    });
    const { id } = made.json.environment;
    const again = await ask<Failure>('POST', '/environments', { slug: 'staging' });
    t.equal(again.status, 409);
    t.equal(again.headers.get('x-error-code'), 'slug_taken');
    t.equal((await ask('POST', '/environments', { slug: 'Not A Slug' })).status, 400);
    t.strictSame((await ask<Failure>('POST', '/environments', {})).json, { error: 'slug is required' });
    t.strictSame(
      (await ask<Listed>('GET', '/environments')).json.items.map((item) => item['slug']),
      ['default', 'staging'],
    );
    for (const name of [id, 'staging'])
      t.match((await ask('GET', `/environments/${name}`)).json, { environment: { id } });
    const changed = await ask('PATCH', `/environments/${id}`, {
      disabled: true,
      settings: { maxFileSizeMb: 3, limits: { bodyLength: 5 } },
    });
    t.match(changed.json, {
      environment: { disabled: true, name: 'Staging', settings: { maxFileSizeMb: 3, limits: { bodyLength: 5 } } },
    });
    const bad = await ask<Failure>('PATCH', `/environments/${id}`, { settings: { limits: { jsonBodyBytes: 1 } } });
    t.strictSame(
      [bad.status, bad.json.error],
      [400, 'settings.limits.jsonBodyBytes must be between 1024 and 1000000, not 1'],
    );
    t.strictSame((await ask('DELETE', `/environments/${id}`)).json, { deleted: true });
    for (const method of ['GET', 'DELETE']) t.equal((await ask(method, `/environments/${id}`)).status, 404);
  });

  await t.test('keys are created, listed, rotated and revoked', async (t) => {
    const keys = `/environments/${server.environment.id}/keys`;
    const made = await ask<{ key: { id: string; secretKey: string } }>('POST', keys, {
      kind: 'secret',
      name: 'ci',
      scope: 'read',
      rooms: 'docs/*',
      rateLimit: 'unlimited',
      expiresInSeconds: 3600,
    });
    t.equal(made.status, 201);
    t.match(made.json, {
      key: {
        secretKey: /^sk_default_/,
        name: 'ci',
        scope: 'read',
        rooms: 'docs/*',
        rateLimit: 'unlimited',
        expiresAt: new Date(server.ctx.clock.now() + HOUR).toISOString(),
      },
    });
    const { id, secretKey } = made.json.key;
    const stateOf = async (keyId: string) =>
      (await ask<Listed>('GET', keys)).json.items.find((item) => item['id'] === keyId);
    t.match(await stateOf(id), { state: 'active', lastUsedAt: null, preview: /^sk_default_.{4}…$/ });
    t.notOk((await ask('GET', keys)).text.includes(secretKey), 'lists contain no secret');

    t.equal((await server.request('GET', '/rooms/docs%2F1/threads', { key: secretKey })).status, 200);
    t.equal((await server.request('GET', '/rooms/other/threads', { key: secretKey })).status, 403);
    await writeKeyUses(server.ctx);
    t.match(await stateOf(id), { lastUsedAt: new Date(server.ctx.clock.now()).toISOString() });

    const rotated = await ask<{ key: { id: string; secretKey: string }; replaces: string }>(
      'POST',
      `/keys/${id}/rotate`,
      { overlapSeconds: 60 },
    );
    t.equal(rotated.status, 201);
    t.match(rotated.json, { key: { scope: 'read', rooms: 'docs/*', rateLimit: 'unlimited' }, replaces: id });
    const works = async (key: string) =>
      (await server.request('GET', '/rooms/docs%2F1/threads', { key })).status === 200;
    t.ok((await works(secretKey)) && (await works(rotated.json.key.secretKey)));
    server.clock.advance(MINUTE);
    t.strictSame([await works(secretKey), await works(rotated.json.key.secretKey)], [false, true]);
    t.match(await stateOf(id), { state: 'expired' });

    for (let i = 0; i < 2; i++)
      t.strictSame((await ask('DELETE', `/keys/${rotated.json.key.id}`)).json, { deleted: true });
    t.notOk(await works(rotated.json.key.secretKey));
    t.match(await stateOf(rotated.json.key.id), { state: 'revoked' });
    t.match((await ask('POST', keys, { kind: 'publishable' })).json, { key: { publishableKey: /^pk_default_/ } });

    t.equal((await ask('POST', keys, { kind: 'other' })).status, 400);
    for (const [fields, error] of [
      [{ rateLimit: 'much' }, 'rateLimit must be an integer between 1 and 1000000, unlimited or null'],
      [{ rateLimit: 0 }, 'rateLimit must be an integer between 1 and 1000000, unlimited or null'],
      [{ expiresInSeconds: -1 }, 'expiresInSeconds must be an integer between 1 and 315360000 or null'],
      [{ rooms: '' }, 'rooms must be a string of 1 to 513 characters or null'],
    ] as const)
      t.match(await ask('POST', keys, { kind: 'secret', ...fields }), { status: 400, json: { error } }, error);
    t.strictSame(
      (await ask<Failure>('POST', `/keys/${id}/rotate`, { overlapSeconds: -1 })).json.error,
      'overlapSeconds must be between 0 and 315360000, not -1',
    );
    for (const [method, path, body] of [
      ['DELETE', '/keys/key_none'],
      ['POST', '/keys/key_none/rotate', {}],
      ['GET', '/environments/none/keys'],
      ['POST', '/environments/none/keys', { kind: 'secret' }],
    ] as const) {
      t.equal((await ask(method, path, body)).status, 404, `${method} ${path}`);
    }
  });

  await t.test('no route of an admin works without a session', async (t) => {
    for (const route of apiRoutes.filter(({ credential }) => credential === 'admin')) {
      const path = route.path.replaceAll(/:\w+/g, 'x');
      for (const key of [null, server.key, 'adm_', `adm_${'x'.repeat(43)}`, 'pk_default_x']) {
        t.equal(
          (await server.request(route.method, path, { key })).status,
          401,
          `${route.operationId} with ${key?.slice(0, 3)}`,
        );
      }
    }
  });
});
