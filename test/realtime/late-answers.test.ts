import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { LEASE_MS } from '../../src/ports/shared.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { createWorld, START, startWorker } from '../helpers/realtime.ts';

// What can happen while shared memory, as over a network, has not answered yet.

const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

for (const [method, owners] of [
  ['list', []],
  ['put', ['']],
] as const) {
  await t.test(`a socket that closes while its membership waits for ${method} is not left in the room`, async (t) => {
    const clock = new ManualClock(START);
    const shared = new DelayedShared(new MemoryShared(clock));
    const world = await createWorld(t, { shared, clock });
    const worker = await startWorker(t, world);
    const ann = await worker.join(await world.token({ userId: 'ann' }));
    const { reached, release } = shared.hold(method);
    ann.send({ type: 'room.join', data: { roomId: 'lobby' } });
    await reached;
    await ann.terminate();
    while (worker.realtime.connections() > 0) await nextIteration();
    release();
    const records = await shared.list(`room/${world.environment.id}/lobby`);
    t.strictSame(
      records.map(({ owner }) => owner),
      owners,
      'at most as a lost connection, within the grace period',
    );
  });
}

await t.test('a socket that closes while it is being counted is not counted afterwards', async (t) => {
  const clock = new ManualClock(START);
  const shared = new DelayedShared(new MemoryShared(clock));
  const world = await createWorld(t, { shared, clock });
  const worker = await startWorker(t, world);
  const { reached, release } = shared.hold('count');
  const socket = worker.open({
    headers: { 'X-Service-Key': world.key, 'X-Service-Token': await world.token({ userId: 'ann' }) },
  });
  await reached;
  await socket.terminate();
  while (worker.realtime.connections() > 0) await nextIteration();
  release();
  t.equal(await shared.total(`conn/${world.environment.id}/ann`), 0);
});

await t.test('the first message of a socket waits until the socket is counted', async (t) => {
  const clock = new ManualClock(START);
  const shared = new DelayedShared(new MemoryShared(clock));
  const world = await createWorld(t, { shared, clock });
  const worker = await startWorker(t, world, { 'ws.maxUnauthenticatedPerIp': '1' });
  const first = worker.open({}, `?key=${world.key}`);
  await first.opened;
  const { reached, release } = shared.hold('count');
  const second = worker.open({}, `?key=${world.key}`);
  await second.opened;
  second.send({ type: 'connect', id: 1, data: { token: await world.token({ userId: 'ann' }) } });
  await reached;
  release();
  t.strictSame(await second.closed, { code: 4429, reason: 'too_many_connections' });
  t.notOk(second.frames.some(({ type }) => type === 'welcome'));
});

await t.test('of sockets that open at the same moment, exactly as many as the limit allows stay open', async (t) => {
  const clock = new ManualClock(START);
  const shared = new DelayedShared(new MemoryShared(clock));
  const world = await createWorld(t, { shared, clock });
  const workers = [
    await startWorker(t, world, { 'ws.maxConnectionsPerUser': '3' }, 'w1'),
    await startWorker(t, world, { 'ws.maxConnectionsPerUser': '3' }, 'w2'),
  ];
  const headers = { 'X-Service-Key': world.key, 'X-Service-Token': await world.token({ userId: 'ann' }) };
  const sockets = Array.from({ length: 10 }, (_, i) => workers[i % 2]?.open({ headers }));
  const outcomes = await Promise.all(
    sockets.map((socket) =>
      Promise.race([socket?.frame('welcome').then(() => 'welcome'), socket?.closed.then(({ reason }) => reason)]),
    ),
  );
  t.equal(outcomes.filter((outcome) => outcome === 'welcome').length, 3);
  t.equal(outcomes.filter((outcome) => outcome === 'too_many_connections').length, 7);
});

await t.test('a socket that connects while a worker notices the end of its lease is counted once', async (t) => {
  const clock = new ManualClock(START);
  const shared = new DelayedShared(new MemoryShared(clock));
  const world = await createWorld(t, { shared, clock });
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  await worker.join(token);
  await shared.endLease('w1', 0);
  const { reached, release } = shared.hold('renewLease');
  clock.advance(LEASE_MS / 4);
  worker.realtime.tick();
  await reached;
  const tab = worker.join(token);
  while (worker.realtime.connections() < 2) await nextIteration();
  release();
  await tab;
  const total = (): Promise<number> => shared.total(`conn/${world.environment.id}/ann`);
  while ((await total()) === 0) await nextIteration();
  t.equal(await total(), 2);
});

await t.test('a draining worker counts its sockets out before it has closed its shared memory', async (t) => {
  const clock = new ManualClock(START);
  const memory = new MemoryShared(clock);
  const shared = new DelayedShared(memory);
  const world = await createWorld(t, { shared, clock });
  const worker = await startWorker(t, world);
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  await ann.request('room.join', { roomId: 'lobby' });
  const other = new DelayedShared(memory);
  const { reached, release } = shared.hold('put');
  const closed = worker.realtime.close(0, 1_000);
  await reached;
  t.equal(await other.total(`conn/${world.environment.id}/ann`), 1);
  release();
  await closed;
  await shared.maintain();
  t.equal(await other.total(`conn/${world.environment.id}/ann`), 0);
  const left = await other.list(`room/${world.environment.id}/lobby`);
  t.strictSame(
    left.map(({ owner }) => owner),
    [''],
    'within the grace period',
  );
});
