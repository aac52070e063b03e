import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { createWorld, START, startWorker } from '../helpers/realtime.ts';
import { Backend } from '../helpers/writing.ts';

interface RoomPage {
  readonly threads: readonly { readonly id: string; readonly comments?: readonly unknown[] }[];
  readonly nextCursor?: string;
}

await t.test('a reply over the size limit is refused, and can be read in parts', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const threadId = await backend.thread();
    ids.unshift(threadId);
    for (let n = 0; n < 400; n++) await backend.comment(threadId, 'x'.repeat(10_000));
    world.clock.advance(1);
  }
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  const room = (data: object) => ann.request('room.get', { roomId: 'lobby', ...data });
  t.match(await room({ includeComments: true }), {
    type: 'error',
    error: {
      code: 'payload_too_large',
      message:
        /^The room is larger than a message may be \(8388608 bytes\): ask for fewer threads at a time with limit/,
    },
  });
  t.strictSame(
    ((await room({})).data as unknown as RoomPage).threads.map(({ id }) => id),
    ids,
  );
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = (await room({ includeComments: true, limit: 1, ...(cursor === undefined ? {} : { cursor }) }))
      .data as unknown as RoomPage;
    t.equal(page.threads[0]?.comments?.length, 401);
    found.push(...page.threads.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  t.strictSame(found, ids);
  t.match(await room({ cursor: 'x' }), { type: 'error', error: { code: 'invalid_cursor' } });

  const [threadId = ''] = ids;
  for (let n = 0; n < 500; n++) await backend.comment(threadId, 'x'.repeat(10_000));
  t.match(await ann.request('thread.get', { threadId }), {
    type: 'error',
    error: { code: 'payload_too_large', message: /^The thread is larger than a message may be \(8388608 bytes\)/ },
  });
});

await t.test('text counts by its bytes, not its characters', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const threadId = await backend.thread();
  for (let n = 0; n < 300; n++) await backend.comment(threadId, '漢'.repeat(10_000));
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  t.match(await ann.request('thread.get', { threadId }), { type: 'error', error: { code: 'payload_too_large' } });
});

await t.test('a signal to an unknown connection does not read the whole room', async (t) => {
  const clock = new ManualClock(START);
  const shared = new MemoryShared(clock);
  const world = await createWorld(t, { shared, clock });
  const worker = await startWorker(t, world);
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  await ann.request('room.join', { roomId: 'lobby' });
  let scans = 0;
  const list = shared.list.bind(shared);
  shared.list = (key) => {
    scans++;
    return list(key);
  };
  for (const to of ['cn_1kdyak3set4hdkny0cde', '', 'x y', 'cn\u0000', 'é', 'x'.repeat(3_000), '__proto__']) {
    t.match(
      await ann.request('p2p.signal', { to, data: 1 }),
      { type: 'error', error: { code: 'not_in_room' } },
      to.slice(0, 20),
    );
  }
  t.equal(scans, 0);
});
