import t from 'tap';
import type { Frame, TestSocket } from '../helpers/socket.ts';
import { wav } from '../fixtures/media.ts';
import { until } from '../helpers/cluster.ts';
import { startService } from '../helpers/service.ts';
import { formOf } from '../helpers/upload.ts';
import { addUser, done } from '../helpers/writer.ts';

// User tokens that a secret key confined to rooms has issued for users who exist in the whole environment.

const service = await startService(t, { flags: { 'ws.maxConnectionsPerUser': '2' } });
const tenant = await service.tenant('confined-tokens', { quotas: { userWritesPerMinute: 5 } });
const confined = await tenant.newKey({ rooms: 'a/*' });

const issue = async (userId: string, key = confined.value, body: object = {}): Promise<string> =>
  done(201, await tenant.request<{ token: string }>('POST', `/users/${userId}/tokens`, { body, key })).token;

const headersOf = (token: string) => ({ 'X-Service-Key': tenant.publishableKey, 'X-Service-Token': token });

function open(token: string): TestSocket {
  return tenant.open({ headers: headersOf(token) });
}

async function join(token: string): Promise<TestSocket> {
  const socket = open(token);
  await socket.frame('welcome');
  return socket;
}

const refusal = /token was issued by a key that is confined to rooms, so it may not change the settings of users/;

t.test('it does not change the settings of the user, which count in all rooms', async (t) => {
  await addUser(tenant, 'bob');
  const body = { email: { mention: false } };
  const token = await issue('bob');
  const rest = await tenant.request<{ error: string }>('PUT', '/users/bob/notification-settings', {
    body,
    key: null,
    headers: headersOf(token),
  });
  t.equal(rest.status, 403);
  t.match(rest.json.error, refusal);
  const socket = await join(token);
  t.match(await socket.request('notification-settings.put', body), {
    type: 'error',
    error: { code: 'forbidden', message: refusal },
  });
  t.equal((await socket.request('notification-settings.get')).type, 'ok', 'it reads them');
  await socket.close();

  const narrow = await tenant.token({ userId: 'bob', rooms: ['a/1'] });
  t.equal(
    (await tenant.request('PUT', '/users/bob/notification-settings', { body, key: null, headers: headersOf(narrow) }))
      .status,
    200,
    'a backend may confine a token and leave the settings to its user',
  );
});

t.test('its sockets take none from the user', async (t) => {
  await addUser(tenant, 'cleo');
  const token = await issue('cleo');
  const first = await join(token);
  t.match(done(200, await tenant.request('GET', '/users/cleo')), { user: { online: true } });
  const second = await join(token);
  t.strictSame(await open(token).closed, { code: 4429, reason: 'too_many_connections' });

  const other = await tenant.newKey({ rooms: 'b/*' });
  const ofOther = await join(await issue('cleo', other.value));
  const own = [await join(await tenant.token({ userId: 'cleo' })), await join(await tenant.token({ userId: 'cleo' }))];
  t.strictSame(await open(await tenant.token({ userId: 'cleo' })).closed, {
    code: 4429,
    reason: 'too_many_connections',
  });

  await first.close();
  const third = await join(token);
  t.equal((await third.request('auth.refresh', { token: await tenant.token({ userId: 'cleo' }) })).type, 'ok');
  t.strictSame(
    await open(token).closed,
    { code: 4429, reason: 'too_many_connections' },
    'a new token changes nothing about the count',
  );
  await Promise.all([second, third, ofOther, ...own].map((socket) => socket.close()));
  const isOffline = async (): Promise<boolean> =>
    !done(200, await tenant.request<{ user: { online: boolean } }>('GET', '/users/cleo')).user.online;
  await until(isOffline);
});

t.test('its writes are not deducted from those of the user', async (t) => {
  await addUser(tenant, 'dan');
  const create = (socket: TestSocket, n: number): Promise<Frame> =>
    socket.request('thread.create', { roomId: `a/${n}`, body: 'Hello' });
  const [byKey, own] = [await join(await issue('dan')), await join(await tenant.token({ userId: 'dan' }))];
  const refused: boolean[] = [];
  for (let n = 0; n < 6; n++) refused.push((await create(byKey, n)).error?.code === 'rate_limited');
  t.strictSame(refused, [false, false, false, false, false, true]);
  t.equal((await create(own, 6)).type, 'ok');
  await Promise.all([byKey.close(), own.close()]);
});

t.test('an upload for a user is not deducted from the writes of the user', async (t) => {
  await addUser(tenant, 'eve');
  const send = async (query: string, headers: Record<string, string>): Promise<number> => {
    const answer = await fetch(`${service.urls[0]}/api/v1/upload${query}`, {
      method: 'POST',
      headers,
      body: formOf({ bytes: wav(0.1), type: 'audio/wav' }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const statuses: number[] = [];
  for (let n = 0; n < 6; n++) statuses.push(await send('?userId=eve', { Authorization: `Bearer ${confined.value}` }));
  t.strictSame(statuses, [200, 200, 200, 200, 200, 429]);
  t.equal(await send('', headersOf(await tenant.token({ userId: 'eve' }))), 200);
});
