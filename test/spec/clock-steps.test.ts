import { execFileSync } from 'node:child_process';
import t from 'tap';
import { listKeys, revokeKey } from '../../src/domain/access/keys.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import { startService } from '../helpers/service.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Listed {
  readonly items: readonly {
    readonly id: string;
    readonly body: string;
    readonly createdAt: string;
    readonly updatedAt: string;
  }[];
}

await t.test('the rate limit still means a minute after the clock goes back an hour', async (t) => {
  const service = await startService(t, { flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '3' } });
  const { request } = await service.tenant('limited');
  for (let i = 0; i < 3; i++) t.equal((await request('GET', '/rooms')).status, 200);
  service.clock.set(service.clock.now() - HOUR);
  const refused = await request('GET', '/rooms');
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('retry-after'), '60');
  service.clock.advance(60_000);
  t.equal((await request('GET', '/rooms')).status, 200);
});

await t.test(
  'comments and threads keep their order when the clock goes back an hour, or a day forward and back',
  async (t) => {
    const service = await startService(t, { workers: 2 });
    const { request } = await service.tenant('ordered', { requireKnownUsers: false });
    const room = '/rooms/board/threads';
    const post = async (path: string, body: string, worker: number) => {
      const { status, json } = await request<{ thread?: { id: string }; comment?: { id: string } }>('POST', path, {
        body: { userId: 'ann', body },
        worker,
      });
      t.equal(status, 201);
      return json.thread?.id ?? json.comment?.id ?? '';
    };
    const first = await post(room, 'first', 0);
    const comments = `/threads/${first}/comments`;
    const steps = [-HOUR, 0, DAY, 0, -DAY, 0, 1_000];
    for (const [i, step] of steps.entries()) {
      service.clock.set(service.clock.now() + step);
      await post(comments, `reply ${i} a`, 0);
      await post(comments, `reply ${i} b`, 1);
      service.clock.advance(10);
    }
    const { json } = await request<Listed>('GET', comments);
    t.strictSame(
      json.items.map(({ body }) => body),
      ['first', ...steps.flatMap((_, i) => [`reply ${i} a`, `reply ${i} b`])],
    );
    const times = json.items.map(({ createdAt }) => createdAt);
    t.strictSame(times, times.toSorted(), 'times never go back within a thread');

    const edited = json.items.at(-1);
    const patched = await request<{ comment: { createdAt: string; editedAt: string } }>(
      'PATCH',
      `/comments/${edited?.id}`,
      { body: { body: 'edited' } },
    );
    t.ok(patched.json.comment.editedAt >= patched.json.comment.createdAt, 'an edit is not before its comment');
    const before = (await request<Listed>('GET', room)).json.items[0]?.updatedAt ?? '';
    await request('PATCH', `/threads/${first}`, { body: { resolved: true } });
    const { json: changed } = await request<Listed>('GET', `${room}?updatedSince=${before}`);
    t.strictSame(
      changed.items.map(({ id }) => id),
      [first],
      'a client that asks for what changed since finds it',
    );

    service.clock.set(service.clock.now() - DAY);
    const second = await post(room, 'second', 1);
    const threads = await request<Listed>('GET', room);
    t.strictSame(
      threads.json.items.map(({ id }) => id),
      [second, first],
      'the newest thread is still first',
    );
  },
);

for (const [name, step] of [
  ['back an hour', -HOUR],
  ['forward an hour', HOUR],
] as const) {
  await t.test(`sockets stay as they are when the clock goes ${name}`, async (t) => {
    const world = await createWorld(t);
    const worker = await startWorker(t, world, { 'ws.messagesPerSecond': '10', 'ws.messageBurst': '10' });
    const socket = await worker.join(await world.token({ userId: 'ann', ttlSeconds: 4 * 3600 }));
    for (let i = 0; i < 9; i++) socket.send({ type: 'pong' });
    t.equal((await socket.request('pong')).type, 'ok');
    world.clock.set(world.clock.now() + step);
    world.clock.advance(500);
    t.equal((await socket.request('pong')).type, 'ok', 'is not taken for a flood');

    worker.realtime.tick();
    world.clock.advance(25_000);
    worker.realtime.tick();
    await socket.frame('ping');

    const waiting = worker.open();
    await waiting.opened;
    while (worker.realtime.connections() < 2) await new Promise((resolve) => setImmediate(resolve));
    world.clock.set(world.clock.now() - step);
    world.clock.advance(5_000);
    worker.realtime.tick();
    t.equal((await waiting.closed).code, 4408, 'the time to authenticate is 5 s');

    const [key] = await listKeys(world.ctx, world.environment);
    await revokeKey(world.ctx, key?.id ?? '');
    world.clock.advance(1_000);
    worker.realtime.tick();
    t.equal((await socket.closed).code, 4401, 'a revoked key closes its socket');
  });
}

await t.test('processes of a machine share one monotonic clock', (t) => {
  const read = `import { systemClock } from ${JSON.stringify(new URL('../../src/lib/clock.ts', import.meta.url).href)}; console.log(systemClock.monotonic());`;
  const before = systemClock.monotonic();
  const other = Number(
    execFileSync(process.execPath, ['--import=tsx', '--input-type=module', '-e', read], { encoding: 'utf8' }),
  );
  const after = systemClock.monotonic();
  t.ok(before < other && other < after, `${before} < ${other} < ${after}`);
  t.end();
});
