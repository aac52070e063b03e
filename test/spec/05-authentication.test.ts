import { createHmac, generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { revokeKey } from '../../src/domain/access/keys.ts';
import { addSigningKey, listSigningKeys, removeSigningKey } from '../../src/domain/access/signing-keys.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addThread, addUser, done, type Failure } from '../helpers/writer.ts';

// Authentication. Which route takes which credential, in full: credentials.test.ts.

const service = await startService(t, { workers: 2 });
const tenant = await service.tenant('auth');
await addUser(tenant, 'ann');
await addThread(tenant, 'page');

/** How a token fares on a route that takes one: 200, or 401. */
async function statusOf(token: string, of: Tenant = tenant): Promise<number> {
  const answer = await of.request<Failure>('GET', '/turn-credentials', {
    key: null,
    headers: { 'X-Service-Key': of.publishableKey, 'X-Service-Token': token },
  });
  return answer.status;
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token signed by hand, as any JWT library makes it. */
function signed(secret: string | Buffer, claims: object, header: object = {}): string {
  const head = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode(claims)}`;
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`;
}

async function secretOf(of: Tenant): Promise<{ secret: string; kid: string }> {
  const key = (await listSigningKeys(service.ctx, of.environment)).find(({ kind }) => kind === 'secret');
  if (key?.kind !== 'secret') throw new Error('the environment has no secret');
  return key;
}

const now = (): number => Math.floor(service.clock.now() / 1000);
const { secret, kid } = await secretOf(tenant);

t.test(
  'Secret key | value prefixed `sk_` | header `Authorization: Bearer <SECRET_KEY>` | all REST API endpoints',
  async (t) => {
    t.match(tenant.secretKey, /^sk_auth_[A-Za-z0-9]{43}$/);
    const documented = [
      'GET /rooms',
      'GET /rooms/:roomId',
      'GET /rooms/:roomId/threads',
      'POST /rooms/:roomId/threads',
      'GET /threads/:threadId',
      'PATCH /threads/:threadId',
      'DELETE /threads/:threadId',
      'GET /threads/:threadId/comments',
      'POST /threads/:threadId/comments',
      'PATCH /comments/:commentId',
      'DELETE /comments/:commentId',
      'POST /comments/:commentId/reactions',
      'DELETE /reactions/:reactionId',
      'GET /users',
      'GET /rooms/:roomId/presence',
      'GET /rooms/:roomId/p2p/state',
      'PUT /rooms/:roomId/p2p/state',
      'DELETE /rooms/:roomId/p2p/state',
      'GET /turn-credentials',
    ];
    for (const line of documented) {
      const route = apiRoutes.find(({ method, path }) => `${method} ${path}` === line);
      t.match(route?.credential, /^(?:secret|either)$/, line);
    }
  },
);

t.test(
  'Publishable key | value prefixed `pk_` | header `X-Service-Key` | WebSocket connection, with User JWT | header `X-Service-Token`',
  async (t) => {
    t.match(tenant.publishableKey, /^pk_auth_[A-Za-z0-9]{43}$/);
    const socket = await tenant.join({ userId: 'ann' });
    t.match(await socket.frame('welcome'), { data: { userId: 'ann', environmentId: tenant.environment.id } });
    await socket.close();
    const headers = await tenant.userHeaders({ userId: 'ann' });
    for (const [name, missing] of [
      ['X-Service-Key', 'X-Service-Token'],
      ['X-Service-Token', 'X-Service-Key'],
    ] as const) {
      const refusal = await tenant.open({ headers: { [name]: headers[name] ?? '' } }).refused;
      t.equal(refusal.status, 401, `without ${missing}`);
      t.strictSame(Object.keys(refusal.body as object), ['error']);
    }
  },
);

t.test(
  '1 | the secret key identifies the environment; all data returned is scoped to it; it grants full read and write access',
  async (t) => {
    const other = await service.tenant('auth-other');
    t.strictSame(done(200, await other.request('GET', '/rooms')), { items: [] });
    t.match(done(200, await tenant.request('GET', '/rooms')), { items: [{ roomId: 'page' }] });
  },
);

t.test('1 | never for frontend code: CORS does not allow the header Authorization', async (t) => {
  for (const path of ['/turn-credentials', '/rooms/page/p2p/state']) {
    const { status, headers } = await tenant.request('OPTIONS', path, {
      key: null,
      headers: {
        Origin: 'https://app.example.com',
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'authorization',
      },
    });
    t.equal(status, 204);
    t.notMatch(headers.get('access-control-allow-headers')?.toLowerCase(), /authorization/);
    t.match(headers.get('access-control-allow-headers'), /X-Service-Key, X-Service-Token/);
  }
});

t.test('1 | a revoked key stops working on the next request, on every worker', async (t) => {
  const { id, value } = await tenant.newKey({});
  for (const worker of [0, 1]) t.equal((await tenant.request('GET', '/rooms', { key: value, worker })).status, 200);
  await revokeKey(service.ctx, id);
  for (const worker of [1, 0])
    t.match(await tenant.request('GET', '/rooms', { key: value, worker }), {
      status: 401,
      json: { error: 'Invalid API key' },
    });
});

t.test(
  '3 | on P2P state: GET and PUT accept the secret key or JWT auth; DELETE accepts the secret key only',
  async (t) => {
    const headers = await tenant.userHeaders({ userId: 'ann' });
    const path = '/rooms/page/p2p/state';
    t.equal((await tenant.request('PUT', path, { body: { state: 'AQID' } })).status, 200);
    t.equal((await tenant.request('PUT', path, { key: null, headers, body: { state: 'AQID' } })).status, 200);
    t.equal((await tenant.request('GET', path)).status, 200);
    t.equal((await tenant.request('GET', path, { key: null, headers })).status, 200);
    t.equal((await tenant.request('DELETE', path, { key: null, headers })).status, 401);
    t.equal((await tenant.request('DELETE', path)).status, 200);
  },
);

t.test('4 | GET /turn-credentials accepts the secret key or JWT auth', async (t) => {
  t.equal((await tenant.request('GET', '/turn-credentials')).status, 200);
  t.equal(await statusOf(await tenant.token({ userId: 'ann' })), 200);
});

t.test('5 | a missing or invalid credential gives 401', async (t) => {
  t.match(await tenant.request('GET', '/rooms', { key: null }), {
    status: 401,
    json: { error: 'Send the secret key in a header: Authorization: Bearer sk_…' },
  });
  t.match(await tenant.request('GET', '/rooms', { key: 'sk_auth_x' }), {
    status: 401,
    json: { error: 'Invalid API key' },
  });
});

t.test('6 | sub and exp are required; all other claims are optional', async (t) => {
  const exp = now() + 600;
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp })), 200, 'the least, without kid: there is only one key');
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp }, { kid })), 200);
  for (const claims of [
    { exp },
    { sub: 'ann' },
    { sub: '', exp },
    { sub: 7, exp },
    { sub: 'x'.repeat(129), exp },
    { sub: 'a\u0000', exp },
    { sub: 'ann', exp: 'soon' },
    { sub: 'ann', exp: null },
  ]) {
    t.equal(await statusOf(signed(secret, claims)), 401, JSON.stringify(claims).slice(0, 60));
  }
});

t.test('6 | exp, nbf | with 30 s of tolerance', async (t) => {
  const at = now();
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: at - 29 })), 200);
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: at - 31 })), 401);
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: at + 60, nbf: at + 29 })), 200);
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: at + 60, nbf: at + 31 })), 401);
  const token = signed(secret, { sub: 'ann', exp: at + 60 });
  t.equal(await statusOf(token), 200);
  service.clock.advance(91_000);
  t.equal(await statusOf(token), 401, 'one that was good before, too');
});

t.test('6 | at most 24 h from iat to exp', async (t) => {
  const iat = now();
  t.equal(await statusOf(signed(secret, { sub: 'ann', iat, exp: iat + 86_400 })), 200);
  t.equal(await statusOf(signed(secret, { sub: 'ann', iat, exp: iat + 86_401 })), 401);
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: iat + 86_400 })), 200, 'without iat it is counted from now');
  t.equal(await statusOf(signed(secret, { sub: 'ann', exp: iat + 86_460 })), 401, 'and bounded like any other');
  t.equal(
    await statusOf(signed(secret, { sub: 'ann', iat: iat + 10, exp: iat + 86_410 })),
    200,
    'by a clock that is a little ahead',
  );
  t.equal(
    await statusOf(signed(secret, { sub: 'ann', iat: iat + 3_600, exp: iat + 90_000 })),
    401,
    'an iat in the future moves no bound',
  );
});

t.test('6 | aud must be the id or slug of the environment when present', async (t) => {
  const exp = now() + 60;
  for (const aud of [tenant.environment.id, 'auth', ['else', 'auth']])
    t.equal(await statusOf(signed(secret, { sub: 'ann', exp, aud })), 200, String(aud));
  for (const aud of ['else', ['else'], [], '', 7])
    t.equal(await statusOf(signed(secret, { sub: 'ann', exp, aud })), 401, JSON.stringify(aud));
});

t.test(
  '6 | honoured claims: name, picture or avatar, email, metadata make the user known; absent ones erase nothing',
  async (t) => {
    const exp = now() + 600;
    const metadata = { team: 'red' };
    t.equal(
      await statusOf(
        signed(secret, {
          sub: 'kim',
          exp,
          name: 'Kim',
          picture: 'https://example.com/k.png',
          email: 'kim@example.com',
          metadata,
        }),
      ),
      200,
    );
    t.match(done(200, await tenant.request('GET', '/users/kim')), {
      user: {
        name: 'Kim',
        avatarUrl: 'https://example.com/k.png',
        email: 'kim@example.com',
        metadata,
        kind: 'user',
        lastSeenAt: /Z$/,
      },
    });
    t.equal(await statusOf(signed(secret, { sub: 'kim', exp, name: 'Kimberly' })), 200);
    t.match(done(200, await tenant.request('GET', '/users/kim')), {
      user: { name: 'Kimberly', avatarUrl: 'https://example.com/k.png', email: 'kim@example.com', metadata },
    });
    t.equal(await statusOf(signed(secret, { sub: 'kim', exp, avatar: 'https://example.com/new.png' })), 200);
    t.match(done(200, await tenant.request('GET', '/users/kim')), {
      user: { avatarUrl: 'https://example.com/new.png' },
    });
    for (const claims of [
      { name: 7 },
      { picture: 'javascript:0' },
      { email: 'kim' },
      { email: 'kim@example.com\r\nBcc: eve@example.com' },
      { email: 'kim\u0000@example.com' },
      ...['Kim\r\nBcc: eve', 'Kim\nEve approved this', 'Kim\u0000'].map((name) => ({ name })),
      { role: 'admin' },
      { rooms: 'all' },
      { rooms: [7] },
      { metadata: [] },
      { metadata: { big: 'x'.repeat(4096) } },
    ]) {
      t.equal(
        await statusOf(signed(secret, { sub: 'kim', exp, ...claims })),
        401,
        encodeURI(JSON.stringify(claims)).slice(0, 60),
      );
    }
    t.equal(
      await statusOf(signed(secret, { sub: 'kim', exp, name: '\u200b ' })),
      200,
      'a name that shows nothing counts as absent',
    );
    t.match(done(200, await tenant.request('GET', '/users/kim')), { user: { name: 'Kimberly' } });
    for (const [name, error] of [
      ['Kim\nEve', /^name must not contain line breaks or control characters/],
      ['\u2060', /^name must be 1 to 256 characters, not only white space or characters that show nothing$/],
    ] as const) {
      t.match(await tenant.request('PUT', '/users/kim', { body: { name } }), { status: 400, json: { error } });
    }
  },
);

t.test('6 | role viewer reads only; rooms confine to ids and prefix*', async (t) => {
  const put = async (claims: object, room: string): Promise<number> =>
    (
      await tenant.request('PUT', `/rooms/${encodeURIComponent(room)}/p2p/state`, {
        key: null,
        body: { state: 'AQID' },
        headers: {
          'X-Service-Key': tenant.publishableKey,
          'X-Service-Token': signed(secret, { sub: 'ann', exp: now() + 60, ...claims }),
        },
      })
    ).status;
  const get = async (claims: object, room: string): Promise<number> =>
    (
      await tenant.request('GET', `/rooms/${encodeURIComponent(room)}/p2p/state`, {
        key: null,
        headers: {
          'X-Service-Key': tenant.publishableKey,
          'X-Service-Token': signed(secret, { sub: 'ann', exp: now() + 60, ...claims }),
        },
      })
    ).status;
  t.equal(await put({ role: 'viewer' }, 'page'), 403);
  t.equal(await get({ role: 'viewer' }, 'page'), 200);
  for (const role of ['member', 'moderator']) t.equal(await put({ role }, 'page'), 200);
  for (const rooms of [['page'], ['pa*'], ['x', '*']]) t.equal(await put({ rooms }, 'page'), 200, rooms.join());
  for (const rooms of [[], ['pag'], ['page/*'], ['Page'], ['p?ge']]) {
    t.equal(await put({ rooms }, 'page'), 403, rooms.join());
    t.equal(await get({ rooms }, 'page'), 403, rooms.join());
  }
});

t.test('6 | forged | another secret, no algorithm, another algorithm, keys in the header', async (t) => {
  const claims = { sub: 'ann', exp: now() + 600 };
  const good = signed(secret, claims);
  const [head = '', payload = '', signature = ''] = good.split('.');
  const forged: [name: string, token: string][] = [
    ['another secret', signed('x'.repeat(43), claims)],
    ['an empty secret', signed('', claims)],
    ['alg none', `${encode({ alg: 'none' })}.${payload}.`],
    ['alg NONE with the signature', `${encode({ alg: 'NONE' })}.${payload}.${signature}`],
    [
      'alg HS512',
      `${encode({ alg: 'HS512' })}.${payload}.${createHmac('sha512', secret)
        .update(`${encode({ alg: 'HS512' })}.${payload}`)
        .digest('base64url')}`,
    ],
    [
      'a jwk of its own',
      signed('y'.repeat(32), claims, { jwk: { kty: 'oct', k: Buffer.from('y'.repeat(32)).toString('base64url') } }),
    ],
    ['a kid that nobody has', signed(secret, claims, { kid: 'unknown' })],
    ['a kid that is no text', signed(secret, claims, { kid: 7 })],
    ['no signature', `${head}.${payload}.`],
    ['two parts', `${head}.${payload}`],
    ['four parts', `${good}.x`],
    ['another payload', `${head}.${encode({ ...claims, sub: 'eve' })}.${signature}`],
    ['a payload that is no JSON', `${head}.${Buffer.from('x').toString('base64url')}.${signature}`],
    ['nothing', ' '],
    ['very much', `${head}.${'x'.repeat(9000)}.${signature}`],
  ];
  for (const [name, token] of forged) t.equal(await statusOf(token), 401, name);
  t.equal(await statusOf(good), 200, 'the one that they were made of');
});

t.test(
  '6 | keys | public keys are told apart by kid, ask for aud, and hold to one algorithm; removed ones stop at once',
  async (t) => {
    const own = await service.tenant('auth-keys');
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    await addSigningKey(service.ctx, own.environment, { kind: 'public', alg: 'ES256', key: pem, kid: 'ec-1' });
    const { sign } = await import('node:crypto');
    const es256 = (claims: object, header: object = { kid: 'ec-1' }): string => {
      const head = `${encode({ alg: 'ES256', ...header })}.${encode(claims)}`;
      return `${head}.${sign('sha256', Buffer.from(head), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    };
    const claims = { sub: 'ann', exp: now() + 600, aud: 'auth-keys' };
    t.equal(await statusOf(es256(claims), own), 200);
    t.equal(await statusOf(es256({ ...claims, aud: undefined }), own), 401, 'without aud');
    t.equal(await statusOf(es256(claims, {}), own), 401, 'without kid, and there are two keys');
    t.equal(await statusOf(signed(pem, claims, { kid: 'ec-1' }), own), 401, 'HS256 with the public key as secret');
    await removeSigningKey(service.ctx, own.environment, 'ec-1');
    t.equal(await statusOf(es256(claims), own), 401, 'removed');
  },
);

t.test('6 | issuance | POST /users/:userId/tokens makes one that works', async (t) => {
  const answer = await tenant.request<{ token: string; expiresAt: string }>('POST', '/users/new/tokens', {
    body: { ttl: 60, name: 'New' },
  });
  const { token, expiresAt } = done(201, answer);
  t.strictSame(Object.keys(answer.json), ['token', 'expiresAt']);
  t.equal(Date.parse(expiresAt), (now() + 60) * 1000);
  t.match(
    done(200, await tenant.request('GET', '/users/new')),
    { user: { name: 'New', lastSeenAt: null } },
    'known, not connected',
  );
  t.equal(await statusOf(token), 200);
});

t.test('a disabled environment refuses every credential with 403', async (t) => {
  const { updateEnvironment } = await import('../../src/domain/environments/environments.ts');
  const closed = await service.tenant('auth-closed');
  const token = await closed.token({ userId: 'ann' });
  await updateEnvironment(service.ctx, closed.environment.id, { disabled: true });
  await holdsDisabled(t, closed, token, 403);
  await updateEnvironment(service.ctx, closed.environment.id, { disabled: false });
  await holdsDisabled(t, closed, token, 200);
});

async function holdsDisabled(t: Test, closed: Tenant, token: string, status: number): Promise<void> {
  for (const worker of [0, 1]) t.equal((await closed.request('GET', '/rooms', { worker })).status, status);
  t.equal(await statusOf(token, closed), status);
}
