import t from 'tap';
import { presenceKey } from '../../src/domain/rooms/presence.ts';
import type { Presence } from '../../src/model/presence.ts';
import type { TestSocket } from '../helpers/socket.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addUser, done, type Failure } from '../helpers/writer.ts';

// GET /rooms/:roomId/presence (docs/realtime.md, "Rooms").

const service = await startService(t, { workers: 2 });
const GRACE_MS = 10_000;

/** Who is in a room, as each worker answers: they must agree. */
async function presence(tenant: Tenant, roomId: string): Promise<readonly Presence[]> {
  const path = `/rooms/${encodeURIComponent(roomId)}/presence`;
  const [one, two] = await Promise.all(
    [0, 1].map(async (worker) => done(200, await tenant.request<{ items: Presence[] }>('GET', path, { worker })).items),
  );
  t.strictSame(one, two);
  return one ?? [];
}

async function join(
  tenant: Tenant,
  userId: string,
  roomId: string,
  worker: number,
  state?: object,
): Promise<TestSocket> {
  const socket = await tenant.join({ userId }, { worker });
  const { type, error } = await socket.request('room.join', { roomId, state });
  if (type !== 'ok') throw new Error(error?.message);
  return socket;
}

t.test('GET /rooms/:roomId/presence | who is online in the room', async (t) => {
  const tenant = await service.tenant('online');
  await addUser(tenant, 'ann', { name: 'Ann', avatarUrl: 'https://example.com/ann.png', email: 'ann@example.com' });
  const tab = await join(tenant, 'ann', 'page/ö', 0, { colour: 'red' });
  await join(tenant, 'ann', 'page/ö', 1);
  service.clock.advance(1_000);
  await join(tenant, 'bob', 'page/ö', 1);
  const at = (ms: number): string => new Date(service.clock.now() - ms).toISOString();
  const rows = await presence(tenant, 'page/ö');
  t.strictSame(rows, [
    {
      userId: 'ann',
      name: 'Ann',
      avatarUrl: 'https://example.com/ann.png',
      connections: 2,
      joinedAt: at(1_000),
      lastActiveAt: at(1_000),
      state: { colour: 'red' },
    },
    { userId: 'bob', name: null, avatarUrl: null, connections: 1, joinedAt: at(0), lastActiveAt: at(0), state: {} },
  ]);
  t.strictSame(Object.keys(rows[0] ?? {}), [
    'userId',
    'name',
    'avatarUrl',
    'connections',
    'joinedAt',
    'lastActiveAt',
    'state',
  ]);
  service.clock.advance(10_000);
  await tab.request('cursor', { roomId: 'page/ö', x: 0.1, y: 0.2 });
  t.match((await presence(tenant, 'page/ö'))[0], { userId: 'ann', lastActiveAt: at(0), joinedAt: at(11_000) });
});

t.test('GET /rooms/:roomId/presence | an empty or unknown room has no items', async (t) => {
  const tenant = await service.tenant('empty');
  t.strictSame(await presence(tenant, 'unknown'), []);
  const socket = await join(tenant, 'ann', 'page', 0);
  t.equal((await tenant.request('GET', '/rooms/page')).status, 200, 'the first to join makes the room');
  await socket.request('room.leave', { roomId: 'page' });
  t.strictSame(await presence(tenant, 'page'), []);
});

t.test('GET /rooms/:roomId/presence | a user is there until the grace after the last tab is over', async (t) => {
  const tenant = await service.tenant('grace');
  const { ctx } = service;
  // Their timer renews leases more rarely than these tests turn the clock.
  for (const owner of ['web-1', 'web-2'])
    while (!(await ctx.shared.renewLease(owner))) await new Promise((resolve) => setImmediate(resolve));
  const watcher = await join(tenant, 'watcher', 'page', 1);
  service.clock.advance(1);
  const ann = await join(tenant, 'ann', 'page', 0);
  await watcher.until(
    () => watcher.frames.some(({ type, data }) => type === 'presence.joined' && data?.['userId'] === 'ann'),
    'ann',
  );
  await ann.terminate();
  const key = presenceKey(tenant.environment.id, 'page');
  const isLost = async (): Promise<boolean> => (await ctx.shared.list(key)).some(({ owner }) => owner === '');
  while (!(await isLost())) await new Promise((resolve) => setImmediate(resolve));
  service.clock.advance(GRACE_MS - 1);
  t.match(await presence(tenant, 'page'), [{ userId: 'watcher' }, { userId: 'ann', connections: 1 }]);
  service.clock.advance(1);
  t.match(await presence(tenant, 'page'), [{ userId: 'watcher' }]);
  t.equal((await presence(tenant, 'page')).length, 1);
  t.match((await watcher.frame('presence.left')).data, { userId: 'ann' });
});

t.test('GET /rooms/:roomId/presence | a room id can be the address of a page', async (t) => {
  const tenant = await service.tenant('addresses');
  const roomId = 'https://shop.example.com/ü?'.padEnd(400, 'ü');
  await join(tenant, 'ann', roomId, 0);
  t.match(await presence(tenant, roomId), [{ userId: 'ann' }]);
  t.strictSame(await presence(tenant, `${roomId}ü`), []);
});

t.test('GET /rooms/:roomId/presence | the secret key, within its rooms and its environment', async (t) => {
  const [tenant, other] = [await service.tenant('mine'), await service.tenant('theirs')];
  await join(tenant, 'ann', 'page', 0);
  t.strictSame(await presence(other, 'page'), []);
  const bound = await tenant.newKey({ rooms: 'docs*', scope: 'read' });
  const asked = (headers: Record<string, string>, path = '/rooms/page/presence') =>
    tenant.request<Failure>('GET', path, { headers });
  t.equal((await asked({ Authorization: `Bearer ${bound.value}` })).status, 403);
  t.equal((await asked({ Authorization: `Bearer ${bound.value}` }, '/rooms/docs-1/presence')).status, 200);
  t.equal(
    (
      await tenant.request('GET', '/rooms/page/presence', {
        headers: { Authorization: '', ...(await tenant.userHeaders({ userId: 'ann' })) },
      })
    ).status,
    401,
  );
  t.match((await tenant.request<Failure>('GET', `/rooms/${'x'.repeat(513)}/presence`)).json, {
    error: 'roomId must be 1 to 512 characters',
  });
});
