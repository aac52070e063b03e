import { connect } from 'node:net';
import { once } from 'node:events';
import t from 'tap';
import { createEnvironment, updateEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey, revokeKey } from '../../src/domain/access/keys.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { signUserToken } from '../../src/domain/access/tokens.ts';
import { getUser } from '../../src/domain/users/users.ts';
import { timestamp } from '../../src/lib/clock.ts';
import { createWorld, START, startWorker } from '../helpers/realtime.ts';
import type { SocketOptions } from '../helpers/socket.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

const inHeaders = (key: string, token: string): SocketOptions => ({
  headers: { 'X-Service-Key': key, 'X-Service-Token': token },
});
const inProtocols = (key: string, token: string): SocketOptions => ({
  protocols: ['collab.v1', `collab.key.${key}`, `collab.token.${token}`],
});

await t.test('the welcome contains everything that a client needs', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann', ttlSeconds: 600 }));
  const { data } = socket.frames[0] ?? {};
  t.match(data, { connectionId: /^cn_/, seq: 1 });
  t.strictSame(Object.keys(data ?? {}), [
    'connectionId',
    'userId',
    'environmentId',
    'epoch',
    'seq',
    'recovered',
    'heartbeatMs',
    'maxMessageBytes',
    'tokenExpiresAt',
    'role',
    'serverTime',
  ]);
  t.match(data, {
    userId: 'ann',
    environmentId: world.environment.id,
    epoch: epochOf(world.ctx.store, world.environment),
    recovered: false,
    heartbeatMs: 25_000,
    maxMessageBytes: 65_536,
    tokenExpiresAt: timestamp(START - (START % 1000) + 600_000),
    role: 'member',
    serverTime: timestamp(START),
  });
});

await t.test('credentials in headers: refusals are HTTP responses without an upgrade', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const old = await world.token({ userId: 'ann', ttlSeconds: 60 });
  const cases: [name: string, headers: Record<string, string>, code: string][] = [
    ['no token', { 'X-Service-Key': world.key }, 'missing_credentials'],
    ['no key', { 'X-Service-Token': token }, 'missing_credentials'],
    ['unknown key', { 'X-Service-Key': 'pk_default_unknown', 'X-Service-Token': token }, 'invalid_key'],
    ['broken token', { 'X-Service-Key': world.key, 'X-Service-Token': `${token}x` }, 'invalid_token'],
    ['expired token', { 'X-Service-Key': world.key, 'X-Service-Token': old }, 'token_expired'],
  ];
  world.clock.advance(60_000 + 31_000);
  for (const [name, headers, code] of cases) {
    const { status, headers: answered, body } = await worker.open({ headers }).refused;
    t.equal(status, 401, name);
    t.equal(answered['x-error-code'], code, name);
    t.match(answered['content-type'], /^application\/json/);
    t.ok(answered['x-request-id']);
    t.strictSame(Object.keys(body as object), ['error'], name);
  }
  t.equal(worker.realtime.connections(), 0);
});

await t.test('credentials in subprotocols: only ours is answered, and refusals are close codes', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });

  const good = worker.open(inProtocols(world.key, token));
  await good.frame('welcome');
  t.equal(good.protocol, 'collab.v1');

  const bad = worker.open(inProtocols(world.key, `${token}x`));
  t.strictSame(await bad.closed, { code: 4401, reason: 'invalid_token' });
  t.strictSame(
    bad.frames.map(({ type, error }) => [type, error?.code]),
    [['error', 'invalid_token']],
  );

  const half = worker.open({ protocols: ['collab.v1', `collab.key.${world.key}`] });
  t.strictSame(await half.closed, { code: 4401, reason: 'missing_credentials' });

  const wrongKey = worker.open(inProtocols('pk_default_unknown', token));
  t.strictSame(await wrongKey.closed, { code: 4401, reason: 'invalid_token' });
  t.equal(wrongKey.frames[0]?.error?.code, 'invalid_key');
  t.equal(worker.realtime.connections(), 1);
});

await t.test('the first source of credentials that is present counts', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const ann = await world.token({ userId: 'ann' });
  const both = worker.open({ ...inProtocols(world.key, 'not.a.token'), ...inHeaders(world.key, ann) });
  t.equal((await both.frame('welcome')).data?.['userId'], 'ann');
});

await t.test('the query may carry the key, and the token only if the option allows it', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });

  const keyed = worker.open({ protocols: ['collab.v1', `collab.token.${token}`] }, `?key=${world.key}`);
  t.ok(await keyed.frame('welcome'));

  const search = `?key=${world.key}&token=${token}`;
  const refused = worker.open({}, search);
  t.strictSame(await refused.closed, { code: 4401, reason: 'missing_credentials' });
  t.match(refused.frames[0]?.error?.message, /ws\.allowQueryToken/);

  const open = await startWorker(t, world, { 'ws.allowQueryToken': 'true' }, 'w2');
  t.ok(await open.open({}, search).frame('welcome'));
});

await t.test('credentials in the first message', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });

  await t.test('the welcome comes first, then the reply', async (t) => {
    const socket = worker.open();
    await socket.opened;
    const reply = await socket.request('connect', { key: world.key, token });
    t.strictSame(
      socket.frames.map(({ type }) => type),
      ['welcome', 'ok'],
    );
    t.equal(reply.data?.['connectionId'], socket.frames[0]?.data?.['connectionId']);
  });

  await t.test('the key may be in the query, and a reply is only sent for a message with an id', async (t) => {
    const socket = worker.open({}, `?key=${world.key}`);
    await socket.opened;
    socket.send({ type: 'connect', data: { token } });
    await socket.frame('welcome');
    t.match(await socket.request('pong'), { type: 'ok', data: {} });
    t.equal(socket.frames.length, 2);
  });

  const refusals: [name: string, frame: string | Buffer, code: number, reason: string][] = [
    [
      'a bad token',
      JSON.stringify({ type: 'connect', id: 7, data: { key: world.key, token: 'x.y.z' } }),
      4401,
      'invalid_token',
    ],
    ['no credentials', JSON.stringify({ type: 'connect', id: 7 }), 4401, 'missing_credentials'],
    ['another type', JSON.stringify({ type: 'pong', id: 7 }), 4401, 'missing_credentials'],
    [
      'a token that is no text',
      JSON.stringify({ type: 'connect', id: 7, data: { key: world.key, token: 5 } }),
      4400,
      'bad_message',
    ],
    ['no JSON', '{', 4400, 'bad_message'],
    ['no object', '[]', 4400, 'bad_message'],
    ['a binary frame', Buffer.from('{}'), 4400, 'bad_message'],
    [
      'more than 16 KiB',
      JSON.stringify({ type: 'connect', id: 7, data: { token: 'x'.repeat(16_384) } }),
      4400,
      'bad_message',
    ],
  ];
  for (const [name, frame, code, reason] of refusals) {
    await t.test(`${name} ends the socket`, async (t) => {
      const socket = worker.open();
      await socket.opened;
      socket.sendRaw(frame);
      t.strictSame(await socket.closed, { code, reason });
      t.equal(socket.frames[0]?.type, 'error');
    });
  }

  await t.test('a second message before the welcome closes the socket', async (t) => {
    const socket = worker.open();
    await socket.opened;
    const connect = JSON.stringify({ type: 'connect', id: 1, data: { key: world.key, token: `${token}x` } });
    socket.sendRaw(connect);
    socket.sendRaw(connect);
    const { code } = await socket.closed;
    t.ok([4400, 4401].includes(code));
  });
});

await t.test('a socket that does not authenticate is closed after 5 s, whatever it sends meanwhile', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = worker.open();
  await socket.opened;
  world.clock.advance(4_999);
  worker.realtime.tick();
  const other = worker.open();
  await other.opened;
  world.clock.advance(1);
  worker.realtime.tick();
  t.strictSame(await socket.closed, { code: 4408, reason: 'auth_timeout' });
  t.equal(worker.realtime.connections(), 1, 'a later socket has its own 5 s');
  world.clock.advance(5_000);
  worker.realtime.tick();
  t.equal((await other.closed).code, 4408);
});

await t.test(
  'refused sockets count for their address until their connections are closed, even if the clients ignore it',
  async (t) => {
    const world = await createWorld(t);
    const worker = await startWorker(t, world, { 'ws.maxUnauthenticatedPerIp': '2' });
    const token = await world.token({ userId: 'ann' });
    const badToken = { protocols: ['collab.v1', `collab.key.${world.key}`, 'collab.token.x'] };
    for (let n = 0; n < 2; n++) t.equal((await worker.open(badToken).closed).code, 4401);
    const pending = worker.open();
    t.strictSame(
      await pending.closed,
      { code: 4429, reason: 'too_many_connections' },
      'no more sockets wait to authenticate',
    );
    t.equal((await worker.open(badToken).closed).code, 4401, 'a refused one still gets its close code');
    t.match(await worker.open(badToken).refused, { status: 401 }, 'but not beside twice as many');
    t.match(await worker.open().refused, { status: 429, headers: { 'retry-after': /^\d+$/ } });
    t.ok(await worker.join(token), 'a socket that authenticates in the upgrade is not affected');

    world.clock.advance(30_000);
    worker.realtime.tick();
    const later = worker.open();
    await later.opened;
    await later.request('connect', { key: world.key, token });
    t.equal((await worker.open(badToken).closed).code, 4401, 'later there is room again');
  },
);

await t.test('closings that are no refusals, and those by clients, are not counted for the address', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world, { 'ws.maxUnauthenticatedPerIp': '1' });
  for (let n = 0; n < 3; n++) {
    const socket = worker.open();
    await socket.opened;
    await socket.close();
    while (worker.realtime.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const socket = worker.open();
  await socket.opened;
  await socket.request('connect', { key: world.key, token: await world.token({ userId: 'ann' }) });
  t.pass('a first message is taken');
});

await t.test('the number of unauthenticated sockets of an address is limited over all workers', async (t) => {
  const world = await createWorld(t);
  const flags = { 'ws.maxUnauthenticatedPerIp': '3' };
  const workers = [await startWorker(t, world, flags, 'w1'), await startWorker(t, world, flags, 'w2')] as const;
  const token = await world.token({ userId: 'ann' });
  const waiting = [workers[0].open(), workers[1].open(), workers[0].open()] as const;
  await Promise.all(waiting.map((socket) => socket.opened));
  t.strictSame(await workers[1].open().closed, { code: 4429, reason: 'too_many_connections' });

  await waiting[0].request('connect', { key: world.key, token });
  await waiting[1].close();
  for (const worker of workers) await worker.open().opened;
  await Promise.all([worker0Welcomes(), closesAgain()]);

  async function worker0Welcomes(): Promise<void> {
    t.ok(
      await workers[0].open(inHeaders(world.key, token)).frame('welcome'),
      'a socket that authenticates in the upgrade is not counted',
    );
  }
  async function closesAgain(): Promise<void> {
    t.equal((await workers[0].open().closed).code, 4429);
  }
});

await t.test('only pages of the allowed origins connect', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  await updateEnvironment(world.ctx, world.environment.id, { settings: { allowedOrigins: ['https://app.example'] } });

  t.ok(await worker.open({ ...inProtocols(world.key, token), origin: 'https://app.example' }).frame('welcome'));
  t.ok(await worker.open(inHeaders(world.key, token)).frame('welcome'), 'no origin: not a browser');

  for (const origin of ['https://app.example.evil', 'http://app.example', 'https://APP.example', 'null']) {
    t.strictSame(
      await worker.open({ ...inProtocols(world.key, token), origin }).closed,
      { code: 4403, reason: 'origin_not_allowed' },
      origin,
    );
    const { status, headers } = await worker.open({ ...inHeaders(world.key, token), origin }).refused;
    t.strictSame([status, headers['x-error-code']], [403, 'origin_not_allowed']);
    const third = worker.open({ origin });
    await third.opened;
    third.send({ type: 'connect', id: 1, data: { key: world.key, token } });
    t.strictSame(await third.closed, { code: 4403, reason: 'origin_not_allowed' }, origin);
  }
});

await t.test('a revoked key and a disabled environment refuse every socket', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const { key, value } = await createKey(world.ctx, world.environment, { kind: 'publishable' });
  t.ok(await worker.open(inHeaders(value, token)).frame('welcome'));
  await revokeKey(world.ctx, key.id);
  t.equal((await worker.open(inHeaders(value, token)).refused).status, 401);

  await updateEnvironment(world.ctx, world.environment.id, { disabled: true });
  t.strictSame(await worker.open(inProtocols(world.key, token)).closed, { code: 4403, reason: 'environment_disabled' });
  t.equal((await worker.open(inHeaders(world.key, token)).refused).status, 403);
});

await t.test('a token of another environment is refused', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const other = await createEnvironment(world.ctx, { slug: 'other' });
  await addSigningKey(world.ctx, other, { kind: 'secret' });
  const { token } = await signUserToken(world.ctx, other, { userId: 'ann', ttlSeconds: 60 });
  t.strictSame(await worker.open(inProtocols(world.key, token)).closed, { code: 4401, reason: 'invalid_token' });
});

await t.test('an upgrade counts as a request', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world, { 'rateLimit.exempt': '', 'rateLimit.perMinute': '3' });
  const token = await world.token({ userId: 'ann' });
  t.ok(await worker.open(inHeaders(world.key, token)).frame('welcome'));
  const second = await worker.open(inHeaders(world.key, 'x')).refused;
  t.strictSame(
    [second.status, second.headers['ratelimit'], second.headers['ratelimit-policy']],
    [401, '"default";r=1;t=60', '"default";q=3;w=60'],
  );
  await worker.open().opened;

  const { status, headers, body } = await worker.open(inHeaders(world.key, token)).refused;
  t.equal(status, 429);
  t.equal(headers['retry-after'], '60');
  t.strictSame(body, { error: 'Rate limit exceeded. Try again in 60s' });
  const refused = worker.open(inProtocols(world.key, token));
  t.match(await refused.frame('error'), { error: { code: 'rate_limited', retryAfter: 60 } });
  t.strictSame(await refused.closed, { code: 4429, reason: 'rate_limited' });
  t.strictSame(await worker.open().closed, { code: 4429, reason: 'rate_limited' });
});

await t.test('connecting records the user, which is online while a socket is open', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const online = async (): Promise<unknown> =>
    (JSON.parse(await getUser(world.ctx, world.backend, 'ann')) as { user: unknown }).user;
  const socket = await worker.join(await world.token({ userId: 'ann', name: 'Ann' }));
  t.match(await online(), { userId: 'ann', name: 'Ann', online: true, lastSeenAt: timestamp(START) });
  await socket.close();
  await untilEmpty(worker.realtime.connections.bind(worker.realtime));
  t.match(await online(), { userId: 'ann', online: false });
});

await t.test('an upgrade after an asynchronous check of its token works like any other', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  for (let round = 0; round < 20; round++) {
    const token = await world.token({ userId: `user${round}` });
    const sockets = Array.from({ length: 6 }, (_, index) =>
      worker.open(index % 2 === 0 ? inHeaders(world.key, token) : inProtocols(world.key, token)),
    );
    const welcomes = await Promise.all(
      sockets.map((socket) => socket.frame('welcome').catch((error: Error) => error.message)),
    );
    t.strictSame(
      welcomes.filter((welcome) => typeof welcome === 'string'),
      [],
    );
    await Promise.all(sockets.slice(0, 4).map((socket) => socket.terminate()));
  }
});

await t.test('a request whose framing is ambiguous is dropped', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const { hostname, port } = new URL(worker.url);
  const head = [
    'GET /api/v1/ws HTTP/1.1',
    'Host: a',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  for (const header of ['Content-Length: 5', 'Transfer-Encoding: chunked', 'Host: b']) {
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.on('data', (data) => (answer += String(data)));
    socket.on('error', () => undefined);
    socket.end([...head, header, '', ''].join('\r\n'));
    await once(socket, 'close');
    // The uWebSockets.js builds for Node 22 and later answer a second Host themselves.
    t.match(answer, header.startsWith('Host') ? /^$|^HTTP\/1\.1 400 / : /^$/, header);
  }
});

async function untilEmpty(count: () => number): Promise<void> {
  while (count() > 0) await new Promise((resolve) => setImmediate(resolve));
}
