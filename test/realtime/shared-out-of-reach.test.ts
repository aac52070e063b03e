import t from 'tap';
import { RemoteShared } from '../../src/adapters/fallback/remote-shared.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { listPresence } from '../../src/domain/rooms/presence.ts';
import { cutShared } from '../doubles/cut-shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { presenceFrames, refresh, sees } from '../helpers/presence.ts';
import { createWorld, START, startWorker, type Worker } from '../helpers/realtime.ts';
import type { TestSocket } from '../helpers/socket.ts';

/** Whether the last snapshot that a socket got is partial. */
const isPartial = (socket: TestSocket): unknown =>
  presenceFrames(socket).findLast(({ type }) => type === 'presence.snapshot')?.data?.['partial'];

await t.test('a worker that cannot reach shared memory shows its own users, says so, and comes back', async (t) => {
  const clock = new ManualClock(START);
  const memory = new MemoryShared(clock);
  const world = await createWorld(t, { clock, shared: memory });
  const [near, far] = [cutShared(memory), cutShared(memory)];
  const [nearShared, farShared] = [near, far].map(({ shared }) => new RemoteShared(shared, clock));
  if (nearShared === undefined || farShared === undefined) throw new Error('two views were expected');
  const nearWorld = { ...world, ctx: { ...world.ctx, shared: nearShared } };
  const farWorld = { ...world, ctx: { ...world.ctx, shared: farShared } };
  const one = await startWorker(t, nearWorld, {}, 'w1');
  const two = await startWorker(t, farWorld, {}, 'w2');
  const enter = async (worker: Worker, userId: string): Promise<TestSocket> => {
    const socket = await worker.join(await world.token({ userId }));
    t.equal((await socket.request('room.join', { roomId: 'lobby' })).type, 'ok');
    return socket;
  };
  const presence = async ({ ctx }: typeof nearWorld) =>
    JSON.parse(await listPresence(ctx, world.backend, 'lobby')) as { items: { userId: string }[]; partial?: true };
  const advance = (ms: number): void => {
    clock.advance(ms);
    for (const { realtime } of [one, two]) realtime.tick();
  };

  const [ann, bob] = [await enter(one, 'ann'), await enter(two, 'bob')];
  await sees(ann, 'ann', 'bob');
  t.equal(isPartial(ann), undefined);
  t.strictSame(Object.keys(await presence(nearWorld)), ['items']);

  near.cut = true;
  await ann.request('presence.update', { roomId: 'lobby', state: { at: 1 } });
  while (!nearShared.isPartial()) {
    advance(0);
    await new Promise(setImmediate);
  }
  const carol = await enter(one, 'carol');
  advance(5_000);
  for (const socket of [ann, carol]) await sees(socket, 'ann', 'carol');
  t.equal(isPartial(carol), true);
  const partial = await presence(nearWorld);
  t.strictSame([partial.partial, partial.items.map(({ userId }) => userId)], [true, ['ann', 'carol']]);
  await sees(bob, 'ann', 'bob');
  t.strictSame(Object.keys(await presence(farWorld)), ['items'], 'who reaches it has all that there is');

  near.cut = false;
  advance(5_000);
  while (nearShared.isPartial()) await new Promise(setImmediate);
  advance(5_000);
  for (const socket of [ann, bob, carol]) await sees(socket, 'ann', 'bob', 'carol');
  await refresh(ann);
  t.equal(isPartial(ann), undefined);
  t.equal((await presence(farWorld)).items.length, 3, 'each once');
});
