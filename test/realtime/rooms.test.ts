import t from 'tap';
import { flushBus, namesOf, refusal, type Row, startTwoWorkers } from '../helpers/presence.ts';
import type { Frame, TestSocket } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';

await t.test('the latest cursor of each tick reaches all members except its sender', async (t) => {
  const { one, two, enter, advance } = await startTwoWorkers(t);
  const ann = await enter(one, 'ann');
  const [near, far] = [await enter(one, 'near'), await enter(two, 'far')];
  advance(30_000);
  for (let i = 1; i <= 40; i++) ann.send({ type: 'cursor', data: { roomId: 'lobby', x: i / 40, y: 0.5, tool: 'pen' } });
  for (const socket of [near, far]) {
    const cursors = (): Frame[] => socket.frames.filter(({ type }) => type === 'cursor');
    await socket.until(() => cursors().at(-1)?.data?.['x'] === 1, 'the last position');
    t.ok(cursors().length <= 4, `${cursors().length} frames for 40`);
    t.strictSame(cursors().at(-1), {
      type: 'cursor',
      at: '2026-01-02T03:04:35.678Z',
      roomId: 'lobby',
      actor: { userId: 'ann', via: 'ws', connectionId: ann.frames[0]?.data?.['connectionId'] },
      data: { x: 1, y: 0.5, tool: 'pen' },
    });
  }
  await flushBus(near, ann);
  t.strictSame(
    ann.frames.filter(({ type }) => type === 'cursor'),
    [],
  );
});

await t.test(
  'typing ends by itself after six seconds on every worker, even if the worker of the user has died',
  async (t) => {
    const { world, one, two, enter, advance } = await startTwoWorkers(t);
    const ann = await enter(one, 'ann');
    const [near, far] = [await enter(one, 'near'), await enter(two, 'far')];
    const typing = (socket: TestSocket): unknown[] =>
      socket.frames
        .filter(({ type }) => type === 'typing')
        .map(({ data, actor }) => [actor?.userId, data?.['threadId'], data?.['typing']]);
    const has = (socket: TestSocket, count: number): Promise<unknown> =>
      socket.until(() => typing(socket).length === count, `${count} frames of typing`);

    await ann.request('typing', { roomId: 'lobby', threadId: 'th_1', typing: true });
    await Promise.all([has(near, 1), has(far, 1)]);
    advance(5_999);
    await ann.request('typing', { roomId: 'lobby', threadId: 'th_1', typing: true });
    await Promise.all([has(near, 2), has(far, 2)]);
    advance(5_999);
    await flushBus(near, far);
    await flushBus(far, near);
    t.equal(typing(far).length, 2, 'repeating it extends it');
    advance(1);
    await Promise.all([has(near, 3), has(far, 3)]);
    for (const socket of [near, far]) t.strictSame(typing(socket).at(-1), ['ann', 'th_1', false]);

    ann.send({ type: 'typing', data: { roomId: 'lobby', typing: true } });
    await has(far, 4);
    await ann.request('typing', { roomId: 'lobby', threadId: null, typing: false });
    await has(far, 5);
    t.strictSame(typing(far).slice(3), [
      ['ann', null, true],
      ['ann', null, false],
    ]);
    advance(6_000);
    await flushBus(near, far);
    t.equal(typing(far).length, 5, 'no second end is sent for a user that has stopped');

    ann.send({ type: 'typing', data: { roomId: 'lobby', threadId: 'th_2', typing: true } });
    await has(far, 6);
    await one.realtime.close(0, 0);
    world.clock.advance(6_000);
    two.realtime.tick();
    await has(far, 7);
    t.strictSame(typing(far).at(-1), ['ann', 'th_2', false]);
  },
);

await t.test('a broadcast reaches all other sockets of the room, on both workers, in order', async (t) => {
  const { one, two, enter } = await startTwoWorkers(t);
  const ann = await enter(one, 'ann');
  const others = [await enter(one, 'ann'), await enter(one, 'near'), await enter(two, 'far')];
  const elsewhere = await enter(two, 'elsewhere', {}, 'other');
  for (let i = 0; i < 20; i++)
    ann.send({ type: 'room.broadcast', data: { roomId: 'lobby', data: i % 2 === 0 ? { i } : [i] } });
  for (const socket of others) {
    const got = await socket.until(() => {
      const frames = socket.frames.filter(({ type }) => type === 'room.broadcast');
      return frames.length === 20 && frames;
    }, '20 broadcasts');
    t.strictSame(
      got.map(({ data }) => data as unknown),
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? { i } : [i])),
    );
    t.match(got[0], { roomId: 'lobby', actor: { userId: 'ann' } });
  }
  await flushBus(others[1] as TestSocket, ann);
  t.equal(
    ann.frames.filter(({ type }) => type === 'room.broadcast').length,
    1,
    'a sender does not receive its own broadcast',
  );
  t.equal(elsewhere.frames.filter(({ type }) => type === 'room.broadcast').length, 0);
});

await t.test('a signal reaches only the connection that it is addressed to', async (t) => {
  const { one, two, enter, open } = await startTwoWorkers(t);
  const ann = await enter(one, 'ann');
  const tabs = [await enter(two, 'bob'), await enter(two, 'bob'), await enter(one, 'bob')] as const;
  const idOf = (socket: TestSocket): unknown => socket.frames[0]?.data?.['connectionId'];
  for (const [index, tab] of tabs.entries()) {
    const message =
      index === 0 ? { to: idOf(tab), data: { sdp: index } } : { roomId: 'lobby', to: idOf(tab), data: { sdp: index } };
    t.strictSame((await ann.request('p2p.signal', message)).data, {});
    const got = await tab.frame('p2p.signal');
    t.match(got, {
      roomId: 'lobby',
      actor: { userId: 'ann', connectionId: idOf(ann) },
      data: { from: idOf(ann), to: idOf(tab), data: { sdp: index } },
    });
    t.strictSame((await tab.request('p2p.signal', { to: got.data?.['from'], data: 'answer' })).type, 'ok');
  }
  await ann.until(() => ann.frames.filter(({ type }) => type === 'p2p.signal').length === 3);
  for (const tab of tabs) t.equal(tab.frames.filter(({ type }) => type === 'p2p.signal').length, 1);

  const outside = await open(one, { userId: 'bob' });
  for (const to of [idOf(outside), 'cn_unknown', ''])
    t.strictSame(refusal(await ann.request('p2p.signal', { to, data: 1 })), ['error', 'not_in_room']);
  t.strictSame(refusal(await outside.request('p2p.signal', { to: idOf(ann), data: 1 })), ['error', 'not_in_room']);
  t.strictSame(refusal(await ann.request('p2p.signal', { roomId: 'other', to: idOf(tabs[0]), data: 1 })), [
    'error',
    'not_in_room',
  ]);
});

await t.test('the first user to join creates the room, unless a viewer; tokens reach only their rooms', async (t) => {
  const { world, one, open } = await startTwoWorkers(t);
  const backend = await Backend.of(world);
  const viewer = await open(one, { userId: 'viewer', role: 'viewer' });
  t.equal((await viewer.request('room.join', { roomId: 'new' })).type, 'ok');
  t.match((await viewer.request('room.get', { roomId: 'new' })).data, {
    room: { id: 'new', threadCount: 0, createdAt: null },
    threads: [],
  });
  const ann = await open(one, { userId: 'ann' });
  const seq = await backend.head();
  t.equal((await ann.request('room.join', { roomId: 'new' })).type, 'ok');
  t.match((await viewer.request('room.get', { roomId: 'new' })).data, {
    room: { id: 'new', threadCount: 0, createdAt: '2026-01-02T03:04:05.678Z' },
    threads: [],
  });
  t.equal(await backend.head(), seq, 'creating a room is no event');

  t.equal((await viewer.request('cursor', { roomId: 'new', x: 0, y: 0 })).type, 'ok');
  t.equal((await viewer.request('presence.update', { roomId: 'new', state: {} })).type, 'ok');
  for (const [type, data] of [
    ['room.broadcast', { data: 1 }],
    ['typing', { typing: true }],
  ] as const) {
    t.strictSame(refusal(await viewer.request(type, { roomId: 'new', ...data })), ['error', 'forbidden'], type);
  }

  const confined = await open(one, { userId: 'confined', rooms: ['docs*', 'new'] });
  t.strictSame(refusal(await confined.request('room.join', { roomId: 'lobby' })), ['error', 'forbidden']);
  t.strictSame(refusal(await confined.request('room.get', { roomId: 'lobby' })), ['error', 'forbidden']);
  for (const roomId of ['docs/1', 'new']) t.equal((await confined.request('room.join', { roomId })).type, 'ok');
  await confined.request('auth.refresh', { token: await world.token({ userId: 'confined', rooms: ['docs*'] }) });
  t.strictSame(refusal(await confined.request('cursor', { roomId: 'new', x: 0, y: 0 })), ['error', 'not_in_room']);
  t.equal((await confined.request('cursor', { roomId: 'docs/1', x: 0, y: 0 })).type, 'ok');
  await ann.until(() => namesOf(ann, 'new').join() === 'ann,viewer');
});

await t.test('invalid messages get an error reply that names the bound, and the socket stays open', async (t) => {
  const { one, enter } = await startTwoWorkers(t, { 'ws.messageBurst': '400', 'ws.messagesPerSecond': '400' });
  const ann = await enter(one, 'ann');
  const room = { roomId: 'lobby' };
  const cases: [type: string, data: unknown, code: string, message: RegExp][] = [
    ['room.join', {}, 'invalid_request', /^data\.roomId is required$/],
    ['room.join', { roomId: '' }, 'invalid_request', /^roomId must be 1 to 512 characters(?:, not .+)?$/],
    ['room.join', { roomId: 'a\u0000' }, 'invalid_request', /^roomId must not contain control characters/],
    ['room.join', { roomId: 'x', state: 'text' }, 'invalid_request', /^data\.state must be an object(?:, not .+)?$/],
    ['room.join', { roomId: 'x', state: [] }, 'invalid_request', /^data\.state must be an object(?:, not .+)?$/],
    [
      'room.join',
      { roomId: 'x', state: { x: 'ü'.repeat(2_048) } },
      'invalid_request',
      /^data\.state must be at most 4096 bytes of JSON, not \d+$/,
    ],
    [
      'presence.update',
      { ...room, state: { x: 'x'.repeat(4_096) } },
      'invalid_request',
      /^data\.state must be at most 4096 bytes of JSON, not \d+$/,
    ],
    ['presence.update', room, 'invalid_request', /^data\.state is required$/],
    [
      'presence.update',
      { roomId: 'other', state: {} },
      'not_in_room',
      /^roomId must name a room that this socket has joined$/,
    ],
    ['cursor', { roomId: 'other', x: 0, y: 0 }, 'not_in_room', /joined/],
    ['cursor', { ...room, x: 0 }, 'invalid_request', /^data\.y is required$/],
    ['cursor', { ...room, x: '0', y: 0 }, 'invalid_request', /^data\.x must be a number(?:, not .+)?$/],
    [
      'cursor',
      { ...room, x: 0, y: 0, more: 'x'.repeat(1_024) },
      'invalid_request',
      /^data must be at most 1024 bytes of JSON, not \d+$/,
    ],
    ['typing', { ...room, typing: 'yes' }, 'invalid_request', /^data\.typing must be a boolean(?:, not .+)?$/],
    [
      'typing',
      { ...room, typing: true, threadId: 5 },
      'invalid_request',
      /^data\.threadId must be a string of 0 to 128 characters or null(?:, not .+)?$/,
    ],
    ['typing', { roomId: 'other', typing: true }, 'not_in_room', /joined/],
    ['room.broadcast', room, 'invalid_request', /^data\.data is required$/],
    [
      'room.broadcast',
      { ...room, data: 'x'.repeat(8_192) },
      'invalid_request',
      /^data\.data must be at most 8192 bytes of JSON, not \d+$/,
    ],
    ['p2p.signal', { ...room, to: 'cn_x' }, 'invalid_request', /^data\.data is required$/],
    [
      'p2p.signal',
      { to: 'cn_x', data: 'x'.repeat(16_384) },
      'invalid_request',
      /^data\.data must be at most 16384 bytes of JSON, not \d+$/,
    ],
    ['room.get', {}, 'invalid_request', /^data\.roomId is required$/],
    [
      'room.get',
      { roomId: 'unknown', includeComments: 1 },
      'invalid_request',
      /^data\.includeComments must be a boolean(?:, not .+)?$/,
    ],
    ['thread.get', { threadId: 'th_unknown' }, 'thread_not_found', /./],
  ];
  for (const [type, data, code, message] of cases) {
    const { error } = await ann.request(type, data);
    t.equal(error?.code, code, `${type} ${JSON.stringify(data)?.slice(0, 60)}: ${error?.message}`);
    t.match(error?.message, message);
  }
  t.equal((await ann.request('cursor', { ...room, x: 0, y: 0, more: 'x'.repeat(990) })).type, 'ok');
  t.equal((await ann.request('room.broadcast', { ...room, data: 'x'.repeat(8_190) })).type, 'ok');

  for (let i = 1; i < 50; i++) t.equal((await ann.request('room.join', { roomId: `room-${i}` })).type, 'ok');
  t.strictSame(refusal(await ann.request('room.join', { roomId: 'one too many' })), ['error', 'invalid_request']);
  t.equal((await ann.request('room.join', { roomId: 'room-7' })).type, 'ok', 'a room that it has already joined');
  await ann.request('room.leave', { roomId: 'room-7' });
  t.equal((await ann.request('room.join', { roomId: 'one too many' })).type, 'ok');
});

await t.test('a room and a thread are read as over REST, even if they are larger than the backlog limit', async (t) => {
  const { world, one, open } = await startTwoWorkers(t, { 'ws.maxBackpressureBytes': '262144' });
  const backend = await Backend.of(world);
  const threadId = await backend.thread('lobby');
  for (let i = 0; i < 100; i++) await backend.comment(threadId, 'x'.repeat(9_000));
  const ann = await open(one, { userId: 'ann' });
  const brief = (await ann.request('room.get', { roomId: 'lobby' })).data as { room: Row; threads: Row[] };
  t.match(brief, { room: { id: 'lobby', threadCount: 1 }, threads: [{ id: threadId, commentCount: 101 }] });
  t.notOk(brief.threads[0] !== undefined && 'comments' in brief.threads[0]);
  const full = (await ann.request('room.get', { roomId: 'lobby', includeComments: true })).data as {
    threads: { comments: Row[] }[];
  };
  t.equal(full.threads[0]?.comments.length, 101);
  const thread = (await ann.request('thread.get', { threadId })).data as { comments: Row[] };
  t.strictSame(thread.comments, full.threads[0]?.comments);

  for (let i = 0; i < 6; i++)
    ann.send({ type: 'room.get', id: 100 + i, data: { roomId: 'lobby', includeComments: true } });
  await ann.until(() => ann.frames.some(({ id }) => id === 105), 'six answers of 0.9 MB');
  t.equal((await ann.request('pong')).type, 'ok');
});
