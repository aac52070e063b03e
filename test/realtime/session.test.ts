import t from 'tap';
import { deleteEnvironment, updateEnvironment } from '../../src/domain/environments/environments.ts';
import { timestamp } from '../../src/lib/clock.ts';
import { createWorld, startWorker, type Worker, type World } from '../helpers/realtime.ts';
import type { Frame, TestSocket } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';
import { epochOf } from '../../src/domain/events/streams.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { MemoryDatabase } from '../doubles/memory-database.ts';

function advance(world: World, worker: Worker, ms: number): void {
  world.clock.advance(ms);
  worker.realtime.tick();
}

const count = (socket: TestSocket, type: string): number => socket.frames.filter((frame) => frame.type === type).length;
const refusal = ({ type, error }: Frame): unknown => [type, error?.code];

await t.test('a socket on which nothing was sent for 25 s is pinged', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  worker.realtime.tick();
  const socket = await worker.join(await world.token({ userId: 'bot' }));

  advance(world, worker, 24_999);
  await socket.request('pong');
  advance(world, worker, 1_000);
  t.equal(count(socket, 'ping'), 0, 'a reply was sent meanwhile');
  advance(world, worker, 24_000);
  await socket.frame('ping');
  socket.send({ type: 'pong' });

  const other = await worker.join(await world.token({ userId: 'bot' }));
  advance(world, worker, 20_000);
  await backend.thread();
  await socket.frame('thread.created');
  advance(world, worker, 10_000);
  await socket.request('pong');
  t.equal(count(socket, 'ping'), 1, 'an event was sent meanwhile');
  advance(world, worker, 25_000);
  await Promise.all([socket, other].map((each) => each.until(() => count(each, 'ping') === (each === socket ? 2 : 1))));
});

await t.test('a client is warned 60 s before its token expires, and closed 30 s after', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann', ttlSeconds: 120 });
  const socket = await worker.join(token);
  const expiresAt = socket.frames[0]?.data?.['tokenExpiresAt'] as string;
  const left = Date.parse(expiresAt) - world.clock.now();

  advance(world, worker, left - 60_001);
  await socket.request('pong');
  t.equal(count(socket, 'token.expiring'), 0);
  advance(world, worker, 1_000);
  t.match(await socket.frame('token.expiring'), { data: { tokenExpiresAt: expiresAt } });
  advance(world, worker, 88_999);
  await socket.request('pong');
  t.equal(count(socket, 'token.expiring'), 1);
  advance(world, worker, 1_002);
  t.strictSame(await socket.closed, { code: 4401, reason: 'token_expired' });
});

await t.test('a refreshed token keeps the socket open', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann', ttlSeconds: 120 }));
  advance(world, worker, 100_000);
  await socket.frame('token.expiring');
  const token = await world.token({ userId: 'ann', ttlSeconds: 600 });
  const reply = await socket.request('auth.refresh', { token });
  t.match(reply, {
    type: 'ok',
    data: { tokenExpiresAt: timestamp(Math.floor(world.clock.now() / 1000) * 1000 + 600_000) },
  });
  advance(world, worker, 500_000);
  await socket.request('pong');
  t.equal(count(socket, 'token.expiring'), 1, 'the new token counts');
  advance(world, worker, 60_000);
  await socket.until(() => count(socket, 'token.expiring') === 2);
  advance(world, worker, 90_000);
  t.equal((await socket.closed).reason, 'token_expired');
});

await t.test('an invalid refresh changes nothing, and a token of another user closes the socket', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  t.strictSame(refusal(await socket.request('auth.refresh', { token: 'x.y.z' })), ['error', 'invalid_token']);
  t.match(await socket.request('auth.refresh', {}), {
    error: { code: 'invalid_request', message: 'data.token is required' },
  });
  t.match(await socket.request('auth.refresh'), {
    error: { code: 'invalid_request', message: 'data.token is required' },
  });
  t.match(await socket.request('auth.refresh', 'token'), { error: { message: 'data must be an object' } });

  socket.send({ type: 'auth.refresh', id: 99, data: { token: await world.token({ userId: 'bob' }) } });
  t.strictSame(await socket.closed, { code: 4403, reason: 'forbidden' });
  t.strictSame(socket.frames.filter(({ id }) => id === 99).map(refusal), [['error', 'forbidden']]);
});

await t.test('new claims take effect at once', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'bot' }));
  const rooms = (): (string | undefined)[] =>
    socket.frames.flatMap(({ type, roomId }) => (type === 'thread.created' ? [roomId] : []));

  await backend.thread('lobby');
  await socket.request('auth.refresh', {
    token: await world.token({ userId: 'bot', rooms: ['docs'], role: 'viewer' }),
  });
  await backend.thread('lobby');
  await backend.thread('docs');
  await socket.until(() => rooms().includes('docs'));
  t.strictSame(refusal(await socket.request('thread.create', { roomId: 'docs', body: 'hi' })), ['error', 'forbidden']);

  await socket.request('auth.refresh', { token: await world.token({ userId: 'bot', rooms: ['lobby'] }) });
  await backend.thread('docs');
  t.equal((await socket.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok');
  t.strictSame(refusal(await socket.request('thread.create', { roomId: 'docs', body: 'hi' })), ['error', 'forbidden']);

  await socket.request('auth.refresh', { token: await world.token({ userId: 'bot' }) });
  await backend.thread('docs');
  await socket.until(() => socket.seqs.includes(7));
  t.strictSame(rooms(), ['lobby', 'docs', 'lobby', 'docs']);
  t.strictSame(socket.seqs, [2, 4, 6, 7]);
});

await t.test('a token can be refreshed on a full disk', async (t) => {
  const database = new MemoryDatabase();
  const world = await createWorld(t, { store: new MemoryStore(database) });
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann', role: 'viewer' }));
  database.full = true;
  const token = await world.token({ userId: 'ann', name: 'Ann Other', role: 'member', ttlSeconds: 600 });
  t.match(await socket.request('auth.refresh', { token }), {
    type: 'ok',
    data: { tokenExpiresAt: timestamp(Math.floor(world.clock.now() / 1000) * 1000 + 600_000) },
  });
  t.match(
    await socket.request('thread.create', { roomId: 'lobby', body: 'hi' }),
    { error: { code: 'storage_full' } },
    'the new token allows writes',
  );
  database.full = false;
  t.equal((await socket.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok');
});

await t.test('the sockets of an environment that was imported again reconnect to its new stream', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'ann' }));
  await world.ctx.store.transact(async (tx) =>
    tx.put('envs', world.environment.id, JSON.stringify({ ...world.environment, streamId: 'another' })),
  );
  advance(world, worker, 1_000);
  t.strictSame(await socket.closed, { code: 1012, reason: 'restart' });
  const again = await worker.join(
    await world.token({ userId: 'ann' }),
    `?epoch=${epochOf(world.ctx.store, world.environment)}&since=0`,
  );
  t.match(await again.frame('welcome'), {
    data: { recovered: false, epoch: `${world.ctx.store.epoch}-another`, seq: 0 },
  });
});

await t.test('disabling or deleting an environment closes its sockets', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const token = await world.token({ userId: 'ann' });
  const first = await worker.join(token);
  await updateEnvironment(world.ctx, world.environment.id, { disabled: true });
  t.strictSame(refusal(await first.request('thread.create', { roomId: 'lobby', body: 'hi' })), [
    'error',
    'environment_disabled',
  ]);
  t.strictSame(await first.closed, { code: 4403, reason: 'environment_disabled' });

  await updateEnvironment(world.ctx, world.environment.id, { disabled: false });
  const silent = await worker.join(token);
  await updateEnvironment(world.ctx, world.environment.id, { disabled: true });
  advance(world, worker, 1_000);
  t.strictSame(await silent.closed, { code: 4403, reason: 'environment_disabled' });

  await updateEnvironment(world.ctx, world.environment.id, { disabled: false });
  const second = await worker.join(token);
  await deleteEnvironment(world.ctx, world.environment.id);
  advance(world, worker, 1_000);
  t.strictSame(await second.closed, { code: 4403, reason: 'forbidden' });
});
