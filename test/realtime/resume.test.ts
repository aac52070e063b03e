import t from 'tap';
import { laggingStore } from '../helpers/lagging-store.ts';
import { createWorld, startWorker, type World } from '../helpers/realtime.ts';
import type { TestSocket } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';
import type { Store } from '../../src/ports/store.ts';

const upTo = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index + 1);
const at = (world: World, since: number | string, epoch = epochOf(world.ctx.store, world.environment)): string =>
  `?epoch=${encodeURIComponent(epoch)}&since=${since}`;
const recovered = (socket: TestSocket): unknown => socket.frames[0]?.data?.['recovered'];

/** Adds 30 events to the log, and a user that is recorded already, so that connecting adds none. */
async function withHistory(world: World): Promise<{ backend: Backend; token: string; head: number }> {
  const backend = await Backend.of(world);
  const threadId = await backend.thread();
  while ((await backend.head()) < 30) await backend.comment(threadId);
  return { backend, token: await world.token({ userId: 'bot' }), head: 30 };
}

await t.test('every missed event follows the welcome, or none does', async (t) => {
  const world = await createWorld(t);
  const { backend, token, head } = await withHistory(world);
  const worker = await startWorker(t, world);
  // In the order of their positions, because each case adds an event.
  const cases: [name: string, search: string, expected: number | null][] = [
    ['a future position', at(world, head + 1), null],
    ['from the start', at(world, 0), 0],
    ['from the middle', at(world, 12), 12],
    ['from the last but three', at(world, head), head],
    ['nothing missed', at(world, head + 4), head + 4],
    ['a future position again', at(world, head + 6), null],
    ['another epoch', at(world, 12, 'other'), null],
    ['no epoch', '?since=12', null],
    ['no position', `?epoch=${epochOf(world.ctx.store, world.environment)}`, null],
    ['no resume point', '', null],
    ['a negative position', at(world, -1), null],
    ['no number', at(world, 'abc'), null],
    ['no whole number', at(world, '1.5'), null],
  ];
  for (const [name, search, from] of cases) {
    const socket = await worker.join(token, search);
    const before = await backend.head();
    t.equal(recovered(socket), from !== null, name);
    t.equal(socket.frames[0]?.data?.['seq'], before, name);
    await backend.thread();
    await socket.until(() => socket.seqs.includes(before + 1), name);
    t.strictSame(socket.seqs, upTo(from ?? before, before + 1), name);
    await socket.close();
  }
});

await t.test('the first message may contain the resume point', async (t) => {
  const world = await createWorld(t);
  const { token, head } = await withHistory(world);
  const worker = await startWorker(t, world);
  const epoch = epochOf(world.ctx.store, world.environment);
  const cases: [since: unknown, search: string, expected: boolean][] = [
    [{ epoch, seq: 20 }, '', true],
    [undefined, at(world, 20), true],
    [{ epoch: 'other', seq: 20 }, at(world, 20), false],
    [{ epoch, seq: '20' }, '', false],
    [20, '', false],
  ];
  for (const [since, search, expected] of cases) {
    const socket = worker.open({}, search);
    await socket.opened;
    await socket.request('connect', { key: world.key, token, since });
    t.equal(recovered(socket), expected, JSON.stringify(since));
    if (expected) {
      await socket.until(() => socket.seqs.includes(head));
      t.strictSame(
        socket.frames.slice(0, 3).map(({ type }) => type),
        ['welcome', 'ok', 'comment.created'],
      );
      t.strictSame(socket.seqs, upTo(20, head));
    }
  }
});

await t.test('with subprotocols, the resume point may be in the query', async (t) => {
  const world = await createWorld(t);
  const { token, head } = await withHistory(world);
  const worker = await startWorker(t, world);
  const socket = worker.open(
    { protocols: ['collab.v1', `collab.key.${world.key}`, `collab.token.${token}`] },
    at(world, 29),
  );
  await socket.until(() => socket.seqs.includes(head));
  t.equal(recovered(socket), true);
});

await t.test('a gap of 1 000 events is replayed, one of 1 001 is not', async (t) => {
  const world = await createWorld(t);
  const { backend, token } = await withHistory(world);
  const threadId = await backend.thread();
  await Promise.all(Array.from({ length: 1_000 }, () => backend.comment(threadId)));
  const head = await backend.head();
  const worker = await startWorker(t, world);

  const near = await worker.join(token, at(world, head - 1_000));
  await near.until(() => near.seqs.includes(head));
  t.equal(recovered(near), true);
  t.strictSame(near.seqs, upTo(head - 1_000, head));

  const far = await worker.join(token, at(world, head - 1_001));
  t.equal(recovered(far), false);
  await backend.thread();
  await far.until(() => far.seqs.includes(head + 1));
  t.strictSame(far.seqs, [head + 1]);
});

await t.test('a position that has left the log cannot be resumed', async (t) => {
  const world = await createWorld(t);
  const { token, head } = await withHistory(world);
  await world.ctx.store.trimEvents(streamOf(world.environment), 10);
  const worker = await startWorker(t, world);
  const kept = await worker.join(token, at(world, 10));
  await kept.until(() => kept.seqs.includes(head));
  t.strictSame(kept.seqs, upTo(10, head));
  t.equal(recovered(await worker.join(token, at(world, 9))), false);
});

await t.test('a token with rooms is replayed its events and the position of the stream', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  for (const room of ['docs', 'lobby', 'docs', 'lobby']) await backend.thread(room);
  const worker = await startWorker(t, world);
  const socket = await worker.join(await world.token({ userId: 'bot', rooms: ['docs'] }), at(world, 1));
  await socket.frame('seq');
  t.strictSame(socket.frames.map(({ type, seq }) => [type, seq]).slice(1), [
    ['thread.created', 2],
    ['thread.created', 4],
    ['seq', 5],
  ]);
  await backend.thread('docs');
  await socket.until(() => socket.seqs.includes(6));
  t.strictSame(socket.seqs, [2, 4, 6]);
});

await t.test(
  'the sockets of a worker that did not see events before they were deleted are closed, so that no client misses them unnoticed',
  async (t) => {
    const world = await createWorld(t);
    const { backend, token, head } = await withHistory(world);
    const lagging = laggingStore(world.ctx.store);
    const worker = await startWorker(t, { ...world, ctx: { ...world.ctx, store: lagging.store } });
    const live = await worker.join(token);
    lagging.hold();
    const threadId = await backend.thread();
    const [near, past] = [await worker.join(token, at(world, head + 1)), await worker.join(token)];
    await backend.comment(threadId);
    const last = await worker.join(token, at(world, head + 2));
    lagging.forget();
    lagging.release();
    await world.ctx.store.trimEvents(streamOf(world.environment), head + 2);
    await backend.comment(threadId);
    for (const socket of [live, near, past]) t.equal((await socket.closed).code, 1013);
    await last.until(() => last.seqs.includes(head + 3));
    t.strictSame(last.seqs, [head + 3]);
    t.equal(recovered(await worker.join(token, at(world, head))), false, 'its client reloads');
  },
);

await t.test('a client that resumes from a worker that was ahead receives nothing twice', async (t) => {
  const world = await createWorld(t);
  const { backend, token, head } = await withHistory(world);
  const lagging = laggingStore(world.ctx.store);
  const worker = await startWorker(t, { ...world, ctx: { ...world.ctx, store: lagging.store } });
  const early = await worker.join(token);
  lagging.hold();
  const threadId = await backend.thread();
  await backend.comment(threadId);

  const ahead = await worker.join(token, at(world, head + 1));
  const fresh = await worker.join(token);
  t.match(ahead.frames[0]?.data, { recovered: true, seq: head + 1 });
  t.match(fresh.frames[0]?.data, { recovered: false, seq: head });
  lagging.release();
  await backend.comment(threadId);
  for (const socket of [early, ahead, fresh]) await socket.until(() => socket.seqs.includes(head + 3));
  t.strictSame(early.seqs, upTo(head, head + 3));
  t.strictSame(ahead.seqs, upTo(head + 1, head + 3));
  t.strictSame(fresh.seqs, upTo(head, head + 3));
});

await t.test('a replay is no faster than the client reads', async (t) => {
  const world = await createWorld(t);
  const { backend, token } = await withHistory(world);
  const threadId = await backend.thread();
  const from = await backend.head();
  await Promise.all(Array.from({ length: 300 }, () => backend.comment(threadId, 'x'.repeat(10_000))));
  const head = await backend.head();
  const worker = await startWorker(t, world, { 'ws.maxBackpressureBytes': '1048576' });
  const socket = worker.open(
    { headers: { 'X-Service-Key': world.key, 'X-Service-Token': token }, paused: true },
    at(world, from),
  );
  await socket.opened;
  const other = await worker.join(token);
  await backend.comment(threadId);
  await other.until(() => other.seqs.includes(head + 1));
  socket.resume();
  await socket.until(() => socket.seqs.includes(head + 1));
  t.strictSame(socket.seqs, upTo(from, head + 1));
});

await t.test('a replay of long events reads little more from the log than it sends', async (t) => {
  const world = await createWorld(t);
  const { backend, token } = await withHistory(world);
  const from = await backend.head();
  const stream = streamOf(world.environment);
  for (let batch = 0; batch < 10; batch++) {
    await world.ctx.store.transact(async (tx) => {
      for (let i = 0; i < 30; i++)
        tx.emit(
          stream,
          (seq) => `{"type":"comment.created","seq":${seq},"roomId":"lobby","padding":"${'x'.repeat(50_000)}"}`,
        );
    });
  }
  const head = await backend.head();
  const counting = countingStore(world.ctx.store);
  const worker = await startWorker(t, { ...world, ctx: { ...world.ctx, store: counting.store } });
  const socket = await worker.join(token, at(world, from));
  await socket.until(() => socket.seqs.includes(head));
  t.strictSame(socket.seqs, upTo(from, head));
  const sent = 300 * 50_000;
  t.ok(counting.chars() >= sent && counting.chars() < 1.5 * sent, `${counting.chars()} characters read for ${sent}`);
  t.ok(counting.largest() < 512 * 1024, `${counting.largest()} characters at once`);
});

/** A store that counts the characters of the events that are read from it. */
function countingStore(store: Store): { store: Store; chars: () => number; largest: () => number } {
  let chars = 0;
  let largest = 0;
  const events: Store['events'] = async (...args) => {
    const found = await store.events(...args);
    const read = found.reduce((sum, { text }) => sum + text.length, 0);
    chars += read;
    largest = Math.max(largest, read);
    return found;
  };
  const counting = new Proxy(store, {
    get: (target, name) => {
      if (name === 'events') return events;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { store: counting, chars: () => chars, largest: () => largest };
}
