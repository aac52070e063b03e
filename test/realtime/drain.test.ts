import t from 'tap';
import { MemoryStore } from '../doubles/memory-store.ts';
import type { Store } from '../../src/ports/store.ts';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import { Backend } from '../helpers/writing.ts';
import { streamOf } from '../../src/domain/events/streams.ts';

/** A store whose commits a test can delay. */
function slowStore(): { store: Store; hold: () => void; release: () => void; waiting: () => number } {
  const memory = new MemoryStore();
  const held: (() => void)[] = [];
  let holding = false;
  const transact: Store['transact'] = async (work) => {
    if (holding) await new Promise<void>((resolve) => held.push(resolve));
    return memory.transact(work);
  };
  const store = new Proxy<Store>(memory, {
    get: (target, name) => {
      if (name === 'transact') return transact;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return {
    store,
    hold: () => (holding = true),
    release: () => {
      holding = false;
      for (const resume of held.splice(0)) resume();
    },
    waiting: () => held.length,
  };
}

async function setUp(t: Parameters<typeof createWorld>[0]) {
  const slow = slowStore();
  const world = await createWorld(t, { store: slow.store });
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const threadId = await backend.thread();
  const [socket, idle] = [
    await worker.join(await world.token({ userId: 'bot' })),
    await worker.join(await world.token({ userId: 'bot' })),
  ];
  /** Begins a write that the store delays. */
  const begin = async (body: string): Promise<void> => {
    socket.send({ type: 'comment.create', id: 1, data: { threadId, body } });
    while (slow.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { slow, worker, world, threadId, socket, idle, begin };
}

t.test(
  'a socket with a write in progress gets its answer before it is closed, and later messages are not processed',
  async (t) => {
    const { slow, worker, world, threadId, socket, idle, begin } = await setUp(t);
    const before = await world.ctx.store.lastSeq(streamOf(world.environment));
    slow.hold();
    await begin('under way');
    const closing = worker.realtime.close(0, 60_000);
    t.strictSame(
      await idle.closed,
      { code: 1012, reason: 'restart' },
      'a socket without a message in progress is closed at once',
    );
    socket.send({ type: 'comment.create', id: 2, data: { threadId, body: 'too late' } });
    socket.send({ type: 'pong', id: 3 });
    slow.release();
    await closing;
    t.strictSame(await socket.closed, { code: 1012, reason: 'restart' });
    t.strictSame(
      socket.frames.filter(({ id }) => id !== undefined).map(({ type, id }) => ({ type, id })),
      [{ type: 'ok', id: 1 }],
    );
    t.equal(
      await world.ctx.store.lastSeq(streamOf(world.environment)),
      before + 1,
      'a message without an answer was not written',
    );
  },
);

t.test('a write that takes too long does not delay the drain', async (t) => {
  const { slow, worker, socket, begin } = await setUp(t);
  slow.hold();
  await begin('never done');
  await worker.realtime.close(0, 50);
  t.strictSame(await socket.closed, { code: 1012, reason: 'restart' });
  slow.release();
});

t.test('a socket works until it is closed', async (t) => {
  const { worker, socket, idle, threadId } = await setUp(t);
  const closing = worker.realtime.close(2_000, 1_000);
  const last = await Promise.race([socket.closed.then(() => idle), idle.closed.then(() => socket)]);
  t.equal((await last.request('comment.create', { threadId, body: 'still open' })).type, 'ok');
  await closing;
  t.strictSame(await last.closed, { code: 1012, reason: 'restart' });
});
