import t from 'tap';
import { isOnline } from '../../src/domain/users/online.ts';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import { Backend } from '../helpers/writing.ts';
import { epochOf } from '../../src/domain/events/streams.ts';

await t.test('a burst of messages is allowed, and more closes the socket', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world, { 'ws.messagesPerSecond': '10', 'ws.messageBurst': '20' });
  const token = await world.token({ userId: 'ann' });

  const socket = await worker.join(token);
  for (let i = 0; i < 19; i++) socket.send({ type: 'pong' });
  t.equal((await socket.request('pong')).type, 'ok', 'the whole burst at once');
  world.clock.advance(1_000);
  for (let i = 0; i < 9; i++) socket.send({ type: 'pong' });
  t.equal((await socket.request('pong')).type, 'ok', 'ten more after a second');
  socket.send({ type: 'pong' });
  t.strictSame(await socket.closed, { code: 4429, reason: 'rate_limited' });
  t.equal(socket.frames.at(-1)?.error?.code, 'rate_limited');
});

await t.test('the number of sockets of a user is limited over all workers', async (t) => {
  const world = await createWorld(t);
  const flags = { 'ws.maxConnectionsPerUser': '3' };
  const workers = [await startWorker(t, world, flags, 'w1'), await startWorker(t, world, flags, 'w2')] as const;
  const token = await world.token({ userId: 'ann' });
  const sockets = [await workers[0].join(token), await workers[1].join(token), await workers[0].join(token)] as const;

  for (const worker of workers) {
    const extra = worker.open({ headers: { 'X-Service-Key': world.key, 'X-Service-Token': token } });
    t.strictSame(await extra.closed, { code: 4429, reason: 'too_many_connections' });
    t.strictSame(
      extra.frames.map(({ type }) => type),
      ['error'],
    );
  }
  t.ok(await workers[0].join(await world.token({ userId: 'bob' })), 'another user is not affected');

  await sockets[1].close();
  while (workers[1].realtime.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  t.ok(await workers[0].join(token), 'after one has closed');
  await Promise.all([...sockets.map((socket) => socket.terminate())]);
});

await t.test('what a user reads within a minute is bounded over all sockets and workers', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const flags = { 'ws.readMegabytesPerMinute': '1' };
  const workers = [await startWorker(t, world, flags, 'w1'), await startWorker(t, world, flags, 'w2')] as const;
  const threadId = await backend.thread();
  for (let n = 0; n < 60; n++) await backend.comment(threadId, 'x'.repeat(10_000));
  const token = await world.token({ userId: 'ann' });
  const sockets = [await workers[0].join(token), await workers[1].join(token)] as const;

  for (const socket of sockets) t.equal((await socket.request('thread.get', { threadId })).type, 'ok');
  for (const socket of sockets) {
    const refused = await socket.request('room.get', { roomId: 'lobby' });
    t.match(refused, {
      type: 'error',
      error: {
        code: 'rate_limited',
        message: /^More than 1 MB were read within a minute\. Try again in \d+s$/,
        retryAfter: Number,
      },
    });
    t.equal((await socket.request('pong')).type, 'ok', 'the socket stays open');
  }
  const bob = await workers[0].join(await world.token({ userId: 'bob' }));
  t.equal((await bob.request('thread.get', { threadId })).type, 'ok', 'another user is not affected');
  world.clock.advance(60_000);
  t.equal((await sockets[0].request('room.get', { roomId: 'lobby' })).type, 'ok', 'a minute later');
});

await t.test('a client that does not read is closed with 1013, receives its backlog, and resumes', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world, { 'ws.maxBackpressureBytes': '262144' });
  const token = await world.token({ userId: 'bot' });
  const threadId = await backend.thread();
  const healthy = await worker.join(token);
  const slow = worker.open({ headers: { 'X-Service-Key': world.key, 'X-Service-Token': token }, paused: true });
  await slow.opened;
  while (worker.realtime.connections() < 2) await new Promise((resolve) => setImmediate(resolve));

  let head = 0;
  for (let batch = 0; worker.realtime.connections() === 2; batch++) {
    if (batch === 400) throw new Error('the slow socket was never closed');
    await Promise.all(Array.from({ length: 20 }, () => backend.comment(threadId, 'x'.repeat(10_000))));
    head = await backend.head();
    await healthy.until(() => healthy.seqs.includes(head));
  }
  slow.resume();
  t.strictSame(await slow.closed, { code: 1013, reason: 'slow consumer' });
  const got = slow.seqs;
  const first = got[0] ?? 0;
  t.strictSame(
    got,
    Array.from(got, (_, index) => first + index),
    'without a gap',
  );

  await backend.comment(threadId);
  head = await backend.head();
  await healthy.until(() => healthy.seqs.includes(head));
  const last = got.at(-1) ?? 0;
  const again = await worker.join(token, `?epoch=${epochOf(world.ctx.store, world.environment)}&since=${last}`);
  t.equal(again.frames[0]?.data?.['recovered'], true);
  await again.until(() => again.seqs.includes(head));
  t.strictSame(
    [...got, ...again.seqs],
    Array.from({ length: head - first + 1 }, (_, index) => first + index),
  );
});

await t.test('closing the worker closes every socket with 1012, spread over time, and refuses new ones', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const sockets = await Promise.all(
    [1, 2, 3, 4].map(async (n) => worker.join(await world.token({ userId: `user${n}` }))),
  );
  const pending = worker.open();
  await pending.opened;
  const closed: number[] = [];
  for (const socket of [...sockets, pending])
    socket.closed.then(
      () => closed.push(Date.now()),
      () => undefined,
    );

  const startedAt = Date.now();
  await worker.realtime.close(200, 1_000);
  const late = worker.open({
    headers: { 'X-Service-Key': world.key, 'X-Service-Token': await world.token({ userId: 'late' }) },
  });
  for (const socket of [...sockets, pending, late])
    t.strictSame(await socket.closed, { code: 1012, reason: 'restart' });
  t.ok((closed.at(-1) ?? 0) - startedAt >= 100, 'not all at once');
  t.equal(worker.realtime.connections(), 0);
  t.notOk(await isOnline(world.ctx, world.environment, 'user1'));
});
