import t, { type Test } from 'tap';
import { expireMembershipsOf, GRACE_MS, listPresence, sweepPresence } from '../../src/domain/rooms/presence.ts';
import type { TokenRequest } from '../../src/domain/access/tokens.ts';
import { deleteUser, putUser } from '../../src/domain/users/users.ts';
import { createWorld, startWorker, type Worker, type World } from '../helpers/realtime.ts';
import type { Frame, TestSocket } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';

type Row = Record<string, unknown>;

/** Two workers of one cluster. */
async function cluster(t: Test, flags: Record<string, string> = {}) {
  const world = await createWorld(t);
  const workers = [await startWorker(t, world, flags, 'w1'), await startWorker(t, world, flags, 'w2')] as const;
  const open = async (worker: Worker, request: Partial<TokenRequest> & { userId: string }): Promise<TestSocket> => worker.join(await world.token(request));
  return {
    world,
    one: workers[0],
    two: workers[1],
    open,
    /** Opens a socket that joins the room. */
    enter: async (worker: Worker, userId: string, state?: object, roomId = 'lobby'): Promise<TestSocket> => {
      const socket = await open(worker, { userId });
      const { type, error } = await socket.request('room.join', { roomId, state });
      if (type !== 'ok') throw new Error(error?.message);
      return socket;
    },
    /** Turns the clock, and both workers do what is due then. */
    turn: (ms: number): void => {
      world.clock.advance(ms);
      for (const { realtime } of workers) realtime.tick();
    },
  };
}

/** The members of a room as a socket knows them: the last snapshot and what followed it. */
function membersOf(socket: TestSocket, roomId = 'lobby'): Map<string, Row> {
  const members = new Map<string, Row>();
  for (const { type, roomId: room, data = {} } of socket.frames) {
    if (room !== roomId) continue;
    const userId = String(data['userId']);
    if (type === 'presence.snapshot') {
      members.clear();
      for (const row of data['items'] as Row[]) members.set(String(row['userId']), row);
    }
    if (type === 'presence.joined') {
      if (members.has(userId)) throw new Error(`${userId} joined twice`);
      members.set(userId, data);
    }
    if (type === 'presence.updated') {
      if (!members.has(userId)) throw new Error(`${userId} was updated without being there`);
      members.set(userId, data);
    }
    if (type === 'presence.left' && !members.delete(userId)) throw new Error(`${userId} left without being there`);
  }
  return members;
}

const stateOf = (socket: TestSocket, userId: string): Row => (membersOf(socket).get(userId)?.['state'] ?? {}) as Row;
const namesOf = (socket: TestSocket, roomId?: string): string[] => [...membersOf(socket, roomId).keys()].toSorted();

async function sees(socket: TestSocket, ...userIds: string[]): Promise<void> {
  await socket.until(() => namesOf(socket).join() === userIds.toSorted().join(), `a room of ${userIds.join()}`);
}

const presenceFrames = (socket: TestSocket): Frame[] => socket.frames.filter(({ type }) => type.startsWith('presence.'));

/** Everything sent before is through the bus and delivered: said by `from`, heard by `to`, in order with all else. */
async function settle(from: TestSocket, to: TestSocket, roomId = 'lobby'): Promise<void> {
  const mark = Math.random();
  await from.request('room.broadcast', { roomId, data: { mark } });
  await to.until(() => to.frames.some(({ type, data }) => type === 'room.broadcast' && data?.['mark'] === mark), 'the mark');
}

async function rest({ ctx, backend }: World, roomId = 'lobby'): Promise<Row[]> {
  return (JSON.parse(await listPresence(ctx, backend, roomId)) as { items: Row[] }).items;
}

const refusal = ({ type, error }: Frame): unknown => [type, error?.code];

await t.test('who joins gets a snapshot with itself, and the others hear of it, on both workers', async (t) => {
  const { world, one, two, enter, open } = await cluster(t);
  await putUser(world.ctx, world.backend, 'bob', { name: 'Bob', avatarUrl: 'https://example.com/bob.png' });
  const ann = await enter(one, 'ann', { colour: 'red' });
  const bob = await enter(two, 'bob');
  await sees(ann, 'ann', 'bob');
  t.strictSame(presenceFrames(bob).map(({ type }) => type), ['presence.snapshot']);
  t.equal(bob.frames.findIndex(({ type }) => type === 'presence.snapshot') < bob.frames.findIndex(({ type }) => type === 'ok'), true, 'the snapshot comes before ok');
  t.strictSame(presenceFrames(ann).map(({ type, seq }) => [type, seq]), [['presence.snapshot', undefined], ['presence.joined', undefined]]);

  const at = '2026-01-02T03:04:05.678Z';
  const shown = { userId: 'bob', name: 'Bob', avatarUrl: 'https://example.com/bob.png', connections: 1, joinedAt: at, lastActiveAt: at, state: {} };
  t.match(membersOf(ann).get('bob'), shown);
  t.strictSame(membersOf(ann).get('bob'), membersOf(bob).get('bob'));
  t.strictSame(membersOf(bob).get('bob')?.['connectionIds'], [bob.frames[0]?.data?.['connectionId']]);
  t.match(membersOf(bob).get('ann'), { name: null, state: { colour: 'red' } });
  const rows = await rest(world);
  t.strictSame(rows.map(({ userId }) => userId), ['ann', 'bob']);
  t.strictSame(rows[1], shown, 'REST shows these fields and no others');
  t.strictSame(await rest(world, 'elsewhere'), []);

  const stranger = await open(one, { userId: 'stranger' });
  await settle(ann, bob);
  t.strictSame(stranger.frames.filter(({ roomId }) => roomId === 'lobby'), [], 'who has not joined hears nothing');
});

await t.test('several tabs are one user; joined comes with the first, left when the last has been away for the grace', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const watcher = await enter(two, 'watcher');
  const tabs = [await enter(one, 'ann', { tab: 1 }), await enter(two, 'ann'), await enter(one, 'ann')] as const;
  const count = (): unknown => membersOf(watcher).get('ann')?.['connections'];
  await watcher.until(() => count() === 3, 'three tabs');
  t.match(membersOf(watcher).get('ann'), { state: { tab: 1 } }, 'a tab that says nothing of itself leaves what another said');
  t.equal((await rest(world)).find(({ userId }) => userId === 'ann')?.['connections'], 3);

  await tabs[0].close();
  await watcher.until(() => count() === 2, 'two tabs');
  await tabs[1].terminate();
  await watcher.until(() => count() === 1, 'one tab');
  const told = presenceFrames(watcher).length;
  await tabs[2].terminate();
  while (one.realtime.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  turn(GRACE_MS - 1);
  await enter(one, 'witness');
  await sees(watcher, 'ann', 'watcher', 'witness');
  t.match((await rest(world)).find(({ userId }) => userId === 'ann'), { connections: 1 }, 'within the grace nobody is told');
  turn(1);
  await sees(watcher, 'watcher', 'witness');
  t.strictSame((await rest(world)).map(({ userId }) => userId), ['watcher', 'witness']);
  const after = presenceFrames(watcher).slice(told).map(({ type, data }) => [type, data?.['userId']]);
  t.strictSame(after, [['presence.joined', 'witness'], ['presence.left', 'ann']]);
});

await t.test('a reload is not seen, though it lands on another worker', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const watcher = await enter(two, 'watcher');
  const before = await enter(one, 'ann', { page: 1 });
  await sees(watcher, 'watcher', 'ann');
  const { joinedAt } = membersOf(watcher).get('ann') ?? {};
  await before.terminate();
  while (one.realtime.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  turn(GRACE_MS - 1);
  const after = await enter(two, 'ann', { page: 2 });
  turn(GRACE_MS);
  await watcher.until(() => stateOf(watcher, 'ann')['page'] === 2, 'the new page');
  t.strictSame(presenceFrames(watcher).map(({ type }) => type), ['presence.snapshot', 'presence.joined', 'presence.updated']);
  t.equal(membersOf(watcher).get('ann')?.['joinedAt'], joinedAt);
  t.strictSame(membersOf(watcher).get('ann')?.['connectionIds'], [after.frames[0]?.data?.['connectionId']]);
  sweepPresence(world.ctx);
  t.equal(world.ctx.shared.listByOwner('').length, 0, 'nothing is left of the first page');
});

await t.test('room.leave takes effect at once, for that tab alone', async (t) => {
  const { world, one, two, enter } = await cluster(t);
  const watcher = await enter(two, 'watcher');
  const [first, second] = [await enter(one, 'ann'), await enter(one, 'ann')] as const;
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 2);
  t.strictSame((await first.request('room.leave', { roomId: 'lobby' })).data, {});
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 1);
  const heard = first.frames.length;
  t.strictSame(refusal(await first.request('room.leave', { roomId: 'lobby' })), ['error', 'not_in_room']);
  await second.request('room.leave', { roomId: 'lobby' });
  await sees(watcher, 'watcher');
  t.equal(first.frames.length, heard + 1, 'who has left hears nothing more');
  await second.request('room.join', { roomId: 'lobby' });
  await sees(watcher, 'watcher', 'ann');
  t.equal((await rest(world)).length, 2);
});

await t.test('presence.update tells everybody; the latest state of any tab is the user’s', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const ann = await enter(one, 'ann', { at: 'title' });
  const tab = await enter(two, 'ann');
  const bob = await enter(two, 'bob');
  turn(1_000);
  t.strictSame((await ann.request('presence.update', { roomId: 'lobby', state: { at: 'body' } })).data, {});
  await bob.until(() => stateOf(bob, 'ann')['at'] === 'body');
  turn(1_000);
  await tab.request('presence.update', { roomId: 'lobby', state: { at: 'end', list: [1, { deep: true }] } });
  for (const socket of [ann, bob, tab]) await socket.until(() => stateOf(socket, 'ann')['at'] === 'end');
  t.match((await rest(world))[0], { userId: 'ann', lastActiveAt: '2026-01-02T03:04:07.678Z', joinedAt: '2026-01-02T03:04:05.678Z', state: { at: 'end', list: [1, { deep: true }] } });
  turn(1_000);
  await ann.request('room.join', { roomId: 'lobby', state: { at: 'start' } });
  await bob.until(() => stateOf(bob, 'ann')['at'] === 'start');
  t.equal(membersOf(bob).get('ann')?.['connections'], 2, 'joining again is no second tab');
});

await t.test('a new name is told; an erased user is gone', async (t) => {
  const { world, one, two, enter } = await cluster(t);
  const ann = await enter(one, 'ann');
  const bob = await enter(two, 'bob');
  await sees(ann, 'ann', 'bob');
  await putUser(world.ctx, world.backend, 'bob', { name: 'Robert' });
  await ann.until(() => membersOf(ann).get('bob')?.['name'] === 'Robert');
  await deleteUser(world.ctx, world.backend, 'bob');
  await sees(ann, 'ann');
  t.strictSame((await rest(world)).map(({ userId }) => userId), ['ann']);
  t.match(await bob.closed, { code: 4403, reason: 'forbidden' });
});

await t.test('what a killed worker held leaves after the grace, and nothing of it stays', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const { ctx } = world;
  const watcher = await enter(one, 'watcher');
  await enter(one, 'ann');
  // A third worker that is gone without a word: its records are all that there is of it.
  for (const userId of ['ann', 'ghost']) {
    const text = JSON.stringify({ userId, connectionId: `cn_${userId}`, joinedAt: ctx.clock.now(), activeAt: ctx.clock.now(), state: {}, stateAt: 0, leftAt: null });
    ctx.shared.put({ key: `room/${world.environment.id}/lobby`, name: `cn_${userId}`, owner: 'w3', text });
  }
  turn(5_000);
  await sees(watcher, 'watcher', 'ann', 'ghost');
  t.equal(membersOf(watcher).get('ann')?.['connections'], 2);

  expireMembershipsOf(ctx, 'w3');
  turn(GRACE_MS - 1);
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 1);
  t.strictSame(namesOf(watcher), ['ann', 'ghost', 'watcher']);
  const late = await enter(two, 'late');
  t.strictSame(namesOf(late), ['ann', 'ghost', 'late', 'watcher']);
  turn(1);
  await sees(watcher, 'watcher', 'ann', 'late');
  await sees(late, 'watcher', 'ann', 'late');
  t.strictSame((await rest(world)).map(({ userId }) => userId), ['ann', 'watcher', 'late']);
  sweepPresence(ctx);
  t.strictSame([...ctx.shared.listByOwner(''), ...ctx.shared.listByOwner('w3')], []);
});

await t.test('a worker that drains hands its users on', async (t) => {
  const { one, two, enter, turn } = await cluster(t);
  const watcher = await enter(two, 'watcher');
  await enter(one, 'ann');
  await enter(one, 'gone');
  await sees(watcher, 'watcher', 'ann', 'gone');
  await one.realtime.close(0, 0);
  await enter(two, 'ann');
  two.realtime.tick();
  turn(GRACE_MS);
  await sees(watcher, 'watcher', 'ann');
  t.strictSame(presenceFrames(watcher).filter(({ type }) => type === 'presence.left').map(({ data }) => data), [{ userId: 'gone' }]);
});

await t.test('joining, leaving and coming back at random, everybody ends up with the same room', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const watchers = await Promise.all([enter(one, 'w-one'), enter(two, 'w-two')]);
  let seed = 11;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  const tabs: { userId: string; socket: TestSocket }[] = [];
  for (let step = 0; step < 120; step++) {
    const [tab] = next(3) === 0 ? tabs.splice(next(Math.max(1, tabs.length)), 1) : [];
    if (tab !== undefined) await (next(2) === 0 ? tab.socket.terminate() : tab.socket.request('room.leave', { roomId: 'lobby' }).then(() => tab.socket.close()));
    else if (tabs.length < 30) {
      const userId = `user-${next(12)}`;
      tabs.push({ userId, socket: await enter(next(2) === 0 ? one : two, userId) });
    }
    if (next(10) === 0) turn(next(GRACE_MS * 2));
  }
  turn(GRACE_MS);
  const present = ['w-one', 'w-two', ...new Set(tabs.map(({ userId }) => userId))].toSorted();
  for (const watcher of watchers) await sees(watcher, ...present);
  for (const { socket } of tabs) await sees(socket, ...present);
  t.strictSame((await rest(world)).map(({ userId }) => String(userId)).toSorted(), present);
  const last = await enter(one, 'w-one');
  for (const userId of present) t.strictSame(membersOf(last).get(userId)?.['connections'], (await rest(world)).find((row) => row['userId'] === userId)?.['connections']);
});

await t.test('a cursor reaches all but the one who moved it, the latest of each tick', async (t) => {
  const { one, two, enter, turn } = await cluster(t);
  const ann = await enter(one, 'ann');
  const [near, far] = [await enter(one, 'near'), await enter(two, 'far')];
  turn(30_000);
  for (let i = 1; i <= 40; i++) ann.send({ type: 'cursor', data: { roomId: 'lobby', x: i / 40, y: 0.5, tool: 'pen' } });
  for (const socket of [near, far]) {
    const cursors = (): Frame[] => socket.frames.filter(({ type }) => type === 'cursor');
    await socket.until(() => cursors().at(-1)?.data?.['x'] === 1, 'the last place');
    t.ok(cursors().length <= 4, `${cursors().length} frames for 40`);
    t.strictSame(cursors().at(-1), {
      type: 'cursor',
      at: '2026-01-02T03:04:35.678Z',
      roomId: 'lobby',
      actor: { userId: 'ann', via: 'ws', connectionId: ann.frames[0]?.data?.['connectionId'] },
      data: { x: 1, y: 0.5, tool: 'pen' },
    });
  }
  await settle(near, ann);
  t.strictSame(ann.frames.filter(({ type }) => type === 'cursor'), []);
});

await t.test('typing ends by itself after six seconds, on every worker, also when its worker has died', async (t) => {
  const { world, one, two, enter, turn } = await cluster(t);
  const ann = await enter(one, 'ann');
  const [near, far] = [await enter(one, 'near'), await enter(two, 'far')];
  const typing = (socket: TestSocket): unknown[] => socket.frames.filter(({ type }) => type === 'typing').map(({ data, actor }) => [actor?.userId, data?.['threadId'], data?.['typing']]);
  const has = (socket: TestSocket, count: number): Promise<unknown> => socket.until(() => typing(socket).length === count, `${count} frames of typing`);

  await ann.request('typing', { roomId: 'lobby', threadId: 'th_1', typing: true });
  await Promise.all([has(near, 1), has(far, 1)]);
  turn(5_999);
  await ann.request('typing', { roomId: 'lobby', threadId: 'th_1', typing: true });
  await Promise.all([has(near, 2), has(far, 2)]);
  turn(5_999);
  await settle(near, far);
  await settle(far, near);
  t.equal(typing(far).length, 2, 'said again, it lasts longer');
  turn(1);
  await Promise.all([has(near, 3), has(far, 3)]);
  for (const socket of [near, far]) t.strictSame(typing(socket).at(-1), ['ann', 'th_1', false]);

  ann.send({ type: 'typing', data: { roomId: 'lobby', typing: true } });
  await has(far, 4);
  await ann.request('typing', { roomId: 'lobby', threadId: null, typing: false });
  await has(far, 5);
  t.strictSame(typing(far).slice(3), [['ann', null, true], ['ann', null, false]]);
  turn(6_000);
  await settle(near, far);
  t.equal(typing(far).length, 5, 'who said that they stopped is not said to stop again');

  ann.send({ type: 'typing', data: { roomId: 'lobby', threadId: 'th_2', typing: true } });
  await has(far, 6);
  await one.realtime.close(0, 0);
  world.clock.advance(6_000);
  two.realtime.tick();
  await has(far, 7);
  t.strictSame(typing(far).at(-1), ['ann', 'th_2', false]);
});

await t.test('a broadcast reaches all other sockets of the room, on both workers, in order', async (t) => {
  const { one, two, enter } = await cluster(t);
  const ann = await enter(one, 'ann');
  const others = [await enter(one, 'ann'), await enter(one, 'near'), await enter(two, 'far')];
  const elsewhere = await enter(two, 'elsewhere', {}, 'other');
  for (let i = 0; i < 20; i++) ann.send({ type: 'room.broadcast', data: { roomId: 'lobby', data: i % 2 === 0 ? { i } : [i] } });
  for (const socket of others) {
    const got = await socket.until(() => {
      const frames = socket.frames.filter(({ type }) => type === 'room.broadcast');
      return frames.length === 20 && frames;
    }, '20 broadcasts');
    t.strictSame(got.map(({ data }) => data as unknown), Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? { i } : [i])));
    t.match(got[0], { roomId: 'lobby', actor: { userId: 'ann' } });
  }
  await settle(others[1] as TestSocket, ann);
  t.equal(ann.frames.filter(({ type }) => type === 'room.broadcast').length, 1, 'its own are not sent back');
  t.equal(elsewhere.frames.filter(({ type }) => type === 'room.broadcast').length, 0);
});

await t.test('a signal reaches the one connection that it is for', async (t) => {
  const { one, two, enter, open } = await cluster(t);
  const ann = await enter(one, 'ann');
  const tabs = [await enter(two, 'bob'), await enter(two, 'bob'), await enter(one, 'bob')] as const;
  const idOf = (socket: TestSocket): unknown => socket.frames[0]?.data?.['connectionId'];
  for (const [index, tab] of tabs.entries()) {
    const message = index === 0 ? { to: idOf(tab), data: { sdp: index } } : { roomId: 'lobby', to: idOf(tab), data: { sdp: index } };
    t.strictSame((await ann.request('p2p.signal', message)).data, {});
    const got = await tab.frame('p2p.signal');
    t.match(got, { roomId: 'lobby', actor: { userId: 'ann', connectionId: idOf(ann) }, data: { from: idOf(ann), to: idOf(tab), data: { sdp: index } } });
    t.strictSame((await tab.request('p2p.signal', { to: got.data?.['from'], data: 'answer' })).type, 'ok');
  }
  await ann.until(() => ann.frames.filter(({ type }) => type === 'p2p.signal').length === 3);
  for (const tab of tabs) t.equal(tab.frames.filter(({ type }) => type === 'p2p.signal').length, 1);

  const outside = await open(one, { userId: 'bob' });
  for (const to of [idOf(outside), 'cn_unknown', '']) t.strictSame(refusal(await ann.request('p2p.signal', { to, data: 1 })), ['error', 'not_in_room']);
  t.strictSame(refusal(await outside.request('p2p.signal', { to: idOf(ann), data: 1 })), ['error', 'not_in_room']);
  t.strictSame(refusal(await ann.request('p2p.signal', { roomId: 'other', to: idOf(tabs[0]), data: 1 })), ['error', 'not_in_room']);
});

await t.test('the first to join makes the room, but not a viewer; tokens reach only their rooms', async (t) => {
  const { world, one, open } = await cluster(t);
  const backend = await Backend.of(world);
  const viewer = await open(one, { userId: 'viewer', role: 'viewer' });
  t.equal((await viewer.request('room.join', { roomId: 'new' })).type, 'ok');
  t.strictSame(refusal(await viewer.request('room.get', { roomId: 'new' })), ['error', 'room_not_found']);
  const ann = await open(one, { userId: 'ann' });
  const seq = await backend.head();
  t.equal((await ann.request('room.join', { roomId: 'new' })).type, 'ok');
  t.match((await viewer.request('room.get', { roomId: 'new' })).data, { room: { id: 'new', threadCount: 0, createdAt: '2026-01-02T03:04:05.678Z' }, threads: [] });
  t.equal(await backend.head(), seq, 'that is no event');

  t.equal((await viewer.request('cursor', { roomId: 'new', x: 0, y: 0 })).type, 'ok');
  t.equal((await viewer.request('presence.update', { roomId: 'new', state: {} })).type, 'ok');
  for (const [type, data] of [['room.broadcast', { data: 1 }], ['typing', { typing: true }]] as const) {
    t.strictSame(refusal(await viewer.request(type, { roomId: 'new', ...data })), ['error', 'forbidden'], type);
  }

  const bound = await open(one, { userId: 'bound', rooms: ['docs*', 'new'] });
  t.strictSame(refusal(await bound.request('room.join', { roomId: 'lobby' })), ['error', 'forbidden']);
  t.strictSame(refusal(await bound.request('room.get', { roomId: 'lobby' })), ['error', 'forbidden']);
  for (const roomId of ['docs/1', 'new']) t.equal((await bound.request('room.join', { roomId })).type, 'ok');
  await bound.request('auth.refresh', { token: await world.token({ userId: 'bound', rooms: ['docs*'] }) });
  t.strictSame(refusal(await bound.request('cursor', { roomId: 'new', x: 0, y: 0 })), ['error', 'not_in_room']);
  t.equal((await bound.request('cursor', { roomId: 'docs/1', x: 0, y: 0 })).type, 'ok');
  await ann.until(() => namesOf(ann, 'new').join() === 'ann,viewer');
});

await t.test('faults get an error reply that names the bound, and the socket stays', async (t) => {
  const { one, enter } = await cluster(t, { 'ws.messageBurst': '400', 'ws.messagesPerSecond': '400' });
  const ann = await enter(one, 'ann');
  const room = { roomId: 'lobby' };
  const cases: [type: string, data: unknown, code: string, message: RegExp][] = [
    ['room.join', {}, 'invalid_request', /^data\.roomId is required$/],
    ['room.join', { roomId: '' }, 'invalid_request', /^roomId must be 1 to 128 characters$/],
    ['room.join', { roomId: 'a\u0000' }, 'invalid_request', /^roomId must not contain control characters/],
    ['room.join', { roomId: 'x', state: 'text' }, 'invalid_request', /^data\.state must be an object$/],
    ['room.join', { roomId: 'x', state: [] }, 'invalid_request', /^data\.state must be an object$/],
    ['room.join', { roomId: 'x', state: { x: 'ü'.repeat(2_048) } }, 'invalid_request', /^data\.state must be at most 4096 bytes of JSON$/],
    ['presence.update', { ...room, state: { x: 'x'.repeat(4_096) } }, 'invalid_request', /^data\.state must be at most 4096 bytes of JSON$/],
    ['presence.update', room, 'invalid_request', /^data\.state is required$/],
    ['presence.update', { roomId: 'other', state: {} }, 'not_in_room', /^roomId must name a room that this socket has joined$/],
    ['cursor', { roomId: 'other', x: 0, y: 0 }, 'not_in_room', /joined/],
    ['cursor', { ...room, x: 0 }, 'invalid_request', /^data\.y is required$/],
    ['cursor', { ...room, x: '0', y: 0 }, 'invalid_request', /^data\.x must be a number$/],
    ['cursor', { ...room, x: 0, y: 0, more: 'x'.repeat(1_024) }, 'invalid_request', /^data must be at most 1024 bytes of JSON$/],
    ['typing', { ...room, typing: 'yes' }, 'invalid_request', /^data\.typing must be a boolean$/],
    ['typing', { ...room, typing: true, threadId: 5 }, 'invalid_request', /^data\.threadId must be a string of 0 to 128 characters or null$/],
    ['typing', { roomId: 'other', typing: true }, 'not_in_room', /joined/],
    ['room.broadcast', room, 'invalid_request', /^data\.data is required$/],
    ['room.broadcast', { ...room, data: 'x'.repeat(8_192) }, 'invalid_request', /^data\.data must be at most 8192 bytes of JSON$/],
    ['p2p.signal', { ...room, to: 'cn_x' }, 'invalid_request', /^data\.data is required$/],
    ['p2p.signal', { to: 'cn_x', data: 'x'.repeat(16_384) }, 'invalid_request', /^data\.data must be at most 16384 bytes of JSON$/],
    ['room.get', {}, 'invalid_request', /^data\.roomId is required$/],
    ['room.get', { roomId: 'unknown' }, 'room_not_found', /^Room not found$/],
    ['room.get', { roomId: 'unknown', includeComments: 1 }, 'invalid_request', /^data\.includeComments must be a boolean$/],
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
  t.equal((await ann.request('room.join', { roomId: 'room-7' })).type, 'ok', 'where it is already');
  await ann.request('room.leave', { roomId: 'room-7' });
  t.equal((await ann.request('room.join', { roomId: 'one too many' })).type, 'ok');
});

await t.test('a room and a thread are read as over REST, also when they are longer than what may wait', async (t) => {
  const { world, one, open } = await cluster(t, { 'ws.maxBackpressureBytes': '262144' });
  const backend = await Backend.of(world);
  const threadId = await backend.thread('lobby');
  for (let i = 0; i < 100; i++) await backend.comment(threadId, 'x'.repeat(9_000));
  const ann = await open(one, { userId: 'ann' });
  const brief = (await ann.request('room.get', { roomId: 'lobby' })).data as { room: Row; threads: Row[] };
  t.match(brief, { room: { id: 'lobby', threadCount: 1 }, threads: [{ id: threadId, commentCount: 101 }] });
  t.notOk(brief.threads[0] !== undefined && 'comments' in brief.threads[0]);
  const full = (await ann.request('room.get', { roomId: 'lobby', includeComments: true })).data as { threads: { comments: Row[] }[] };
  t.equal(full.threads[0]?.comments.length, 101);
  const thread = (await ann.request('thread.get', { threadId })).data as { comments: Row[] };
  t.strictSame(thread.comments, full.threads[0]?.comments);

  for (let i = 0; i < 6; i++) ann.send({ type: 'room.get', id: 100 + i, data: { roomId: 'lobby', includeComments: true } });
  await ann.until(() => ann.frames.some(({ id }) => id === 105), 'six answers of 0.9 MB');
  t.equal((await ann.request('pong')).type, 'ok');
});
