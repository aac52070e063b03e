import t from 'tap';
import { releaseOwner, GRACE_MS, presenceKey } from '../../src/domain/rooms/presence.ts';
import { deleteUser, putUser } from '../../src/domain/users/users.ts';
import {
  flushBus,
  membersOf,
  namesOf,
  openInLobby,
  presenceFrames,
  refusal,
  restRows,
  sees,
  startTwoWorkers,
  stateOf,
} from '../helpers/presence.ts';
import type { TestSocket } from '../helpers/socket.ts';

await t.test(
  'a user who joins receives a snapshot that includes it, and the others on both workers receive presence.joined',
  async (t) => {
    const { world, one, two, enter, open } = await startTwoWorkers(t);
    await putUser(world.ctx, world.backend, 'bob', { name: 'Bob', avatarUrl: 'https://example.com/bob.png' });
    const ann = await enter(one, 'ann', { colour: 'red' });
    const bob = await enter(two, 'bob');
    await sees(ann, 'ann', 'bob');
    t.strictSame(
      presenceFrames(bob).map(({ type }) => type),
      ['presence.snapshot'],
    );
    t.equal(
      bob.frames.findIndex(({ type }) => type === 'presence.snapshot') <
        bob.frames.findIndex(({ type }) => type === 'ok'),
      true,
      'the snapshot comes before ok',
    );
    t.strictSame(
      presenceFrames(ann).map(({ type, seq }) => [type, seq]),
      [
        ['presence.snapshot', undefined],
        ['presence.joined', undefined],
      ],
    );

    const at = '2026-01-02T03:04:05.678Z';
    const shown = {
      userId: 'bob',
      name: 'Bob',
      avatarUrl: 'https://example.com/bob.png',
      connections: 1,
      joinedAt: at,
      lastActiveAt: at,
      state: {},
    };
    t.match(membersOf(ann).get('bob'), shown);
    t.strictSame(membersOf(ann).get('bob'), membersOf(bob).get('bob'));
    t.strictSame(membersOf(bob).get('bob')?.['connectionIds'], [bob.frames[0]?.data?.['connectionId']]);
    t.match(membersOf(bob).get('ann'), { name: null, state: { colour: 'red' } });
    const rows = await restRows(world);
    t.strictSame(
      rows.map(({ userId }) => userId),
      ['ann', 'bob'],
    );
    t.strictSame(rows[1], shown, 'REST shows these fields and no others');
    t.strictSame(await restRows(world, 'elsewhere'), []);

    const stranger = await open(one, { userId: 'stranger' });
    await flushBus(ann, bob);
    t.strictSame(
      stranger.frames.filter(({ roomId }) => roomId === 'lobby'),
      [],
      'a socket that has not joined receives nothing',
    );
  },
);

await t.test('several tabs are one user: joined with the first, left after the grace period of the last', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const tabs = [await enter(one, 'ann', { tab: 1 }), await enter(two, 'ann'), await enter(one, 'ann')] as const;
  const count = (): unknown => membersOf(watcher).get('ann')?.['connections'];
  await watcher.until(() => count() === 3, 'three tabs');
  t.match(membersOf(watcher).get('ann'), { state: { tab: 1 } }, 'a tab without a state keeps the state of another');
  t.equal((await restRows(world)).find(({ userId }) => userId === 'ann')?.['connections'], 3);

  await tabs[0].close();
  await watcher.until(() => count() === 2, 'two tabs');
  await tabs[1].terminate();
  await watcher.until(() => count() === 1, 'one tab');
  const before = presenceFrames(watcher).length;
  await tabs[2].terminate();
  await openInLobby(world, 1);
  advance(GRACE_MS - 1);
  await enter(one, 'witness');
  await sees(watcher, 'ann', 'watcher', 'witness');
  t.match(
    (await restRows(world)).find(({ userId }) => userId === 'ann'),
    { connections: 1 },
    'nothing is sent during the grace period',
  );
  advance(1);
  await sees(watcher, 'watcher', 'witness');
  t.strictSame(
    (await restRows(world)).map(({ userId }) => userId),
    ['watcher', 'witness'],
  );
  const after = presenceFrames(watcher)
    .slice(before)
    .map(({ type, data }) => [type, data?.['userId']]);
  t.strictSame(after, [
    ['presence.joined', 'witness'],
    ['presence.left', 'ann'],
  ]);
});

await t.test('a reload is not visible, even if it reaches another worker', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const before = await enter(one, 'ann', { page: 1 });
  await sees(watcher, 'watcher', 'ann');
  const { joinedAt } = membersOf(watcher).get('ann') ?? {};
  await before.terminate();
  await openInLobby(world, 1);
  advance(GRACE_MS - 1);
  const after = await enter(two, 'ann', { page: 2 });
  advance(GRACE_MS);
  await watcher.until(() => stateOf(watcher, 'ann')['page'] === 2, 'the new page');
  t.strictSame(
    presenceFrames(watcher).map(({ type }) => type),
    ['presence.snapshot', 'presence.joined', 'presence.updated'],
  );
  t.equal(membersOf(watcher).get('ann')?.['joinedAt'], joinedAt);
  t.strictSame(membersOf(watcher).get('ann')?.['connectionIds'], [after.frames[0]?.data?.['connectionId']]);
  const records = await world.ctx.shared.list(presenceKey(world.environment.id, 'lobby'));
  t.strictSame(
    records.map(({ owner }) => owner),
    ['w2', 'w2'],
    'no record of the first page remains',
  );
});

await t.test('room.leave takes effect at once, for that tab only', async (t) => {
  const { world, one, two, enter } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const [first, second] = [await enter(one, 'ann'), await enter(one, 'ann')] as const;
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 2);
  t.strictSame((await first.request('room.leave', { roomId: 'lobby' })).data, {});
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 1);
  const received = first.frames.length;
  t.strictSame(refusal(await first.request('room.leave', { roomId: 'lobby' })), ['error', 'not_in_room']);
  await second.request('room.leave', { roomId: 'lobby' });
  await sees(watcher, 'watcher');
  t.equal(first.frames.length, received + 1, 'a socket that has left receives nothing more');
  await second.request('room.join', { roomId: 'lobby' });
  await sees(watcher, 'watcher', 'ann');
  t.equal((await restRows(world)).length, 2);
});

await t.test('presence.update reaches all members; the latest state of any tab is the state of the user', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const ann = await enter(one, 'ann', { at: 'title' });
  const tab = await enter(two, 'ann');
  const bob = await enter(two, 'bob');
  advance(1_000);
  t.strictSame((await ann.request('presence.update', { roomId: 'lobby', state: { at: 'body' } })).data, {});
  await bob.until(() => stateOf(bob, 'ann')['at'] === 'body');
  advance(1_000);
  await tab.request('presence.update', { roomId: 'lobby', state: { at: 'end', list: [1, { deep: true }] } });
  for (const socket of [ann, bob, tab]) await socket.until(() => stateOf(socket, 'ann')['at'] === 'end');
  t.match((await restRows(world))[0], {
    userId: 'ann',
    lastActiveAt: '2026-01-02T03:04:07.678Z',
    joinedAt: '2026-01-02T03:04:05.678Z',
    state: { at: 'end', list: [1, { deep: true }] },
  });
  advance(1_000);
  await ann.request('room.join', { roomId: 'lobby', state: { at: 'start' } });
  await bob.until(() => stateOf(bob, 'ann')['at'] === 'start');
  t.equal(membersOf(bob).get('ann')?.['connections'], 2, 'joining again does not count as a second tab');
});

await t.test('a new name is sent; an erased user leaves', async (t) => {
  const { world, one, two, enter } = await startTwoWorkers(t);
  const ann = await enter(one, 'ann');
  const bob = await enter(two, 'bob');
  await sees(ann, 'ann', 'bob');
  await putUser(world.ctx, world.backend, 'bob', { name: 'Robert' });
  await ann.until(() => membersOf(ann).get('bob')?.['name'] === 'Robert');
  await deleteUser(world.ctx, world.backend, 'bob');
  await sees(ann, 'ann');
  t.strictSame(
    (await restRows(world)).map(({ userId }) => userId),
    ['ann'],
  );
  t.match(await bob.closed, { code: 4403, reason: 'forbidden' });
});

await t.test('the users of a killed worker leave after the grace period, and no record remains', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const { ctx } = world;
  const watcher = await enter(one, 'watcher');
  await enter(one, 'ann');
  // A third worker that was killed: only its records exist.
  await ctx.shared.beginLease('w3');
  for (const userId of ['ann', 'ghost']) {
    const text = JSON.stringify({
      userId,
      connectionId: `cn_${userId}`,
      joinedAt: ctx.clock.now(),
      activeAt: ctx.clock.now(),
      state: {},
      stateAgeMs: null,
    });
    await ctx.shared.put({ key: presenceKey(world.environment.id, 'lobby'), name: `cn_${userId}`, owner: 'w3', text });
  }
  advance(5_000);
  await sees(watcher, 'watcher', 'ann', 'ghost');
  t.equal(membersOf(watcher).get('ann')?.['connections'], 2);

  await releaseOwner(ctx, 'w3');
  advance(GRACE_MS - 1);
  await watcher.until(() => membersOf(watcher).get('ann')?.['connections'] === 1);
  t.strictSame(namesOf(watcher), ['ann', 'ghost', 'watcher']);
  const late = await enter(two, 'late');
  t.strictSame(namesOf(late), ['ann', 'ghost', 'late', 'watcher']);
  advance(1);
  await sees(watcher, 'watcher', 'ann', 'late');
  await sees(late, 'watcher', 'ann', 'late');
  t.strictSame(
    (await restRows(world)).map(({ userId }) => userId),
    ['ann', 'watcher', 'late'],
  );
  const owners = (await ctx.shared.list(presenceKey(world.environment.id, 'lobby'))).map(({ owner }) => owner);
  t.strictSame(owners.toSorted(), ['w1', 'w1', 'w2']);
});

await t.test('the users of a draining worker can continue on another one', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  await enter(one, 'ann');
  await enter(one, 'gone');
  await sees(watcher, 'watcher', 'ann', 'gone');
  await one.realtime.close(0, 0);
  await enter(two, 'ann');
  await openInLobby(world, 2);
  two.realtime.tick();
  advance(GRACE_MS);
  await sees(watcher, 'watcher', 'ann');
  t.strictSame(
    presenceFrames(watcher)
      .filter(({ type }) => type === 'presence.left')
      .map(({ data }) => data),
    [{ userId: 'gone' }],
  );
});

await t.test('after random joins, leaves and reconnects, all sockets see the same room', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watchers = await Promise.all([enter(one, 'w-one'), enter(two, 'w-two')]);
  let seed = 11;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  const tabs: { userId: string; socket: TestSocket }[] = [];
  for (let step = 0; step < 120; step++) {
    const [tab] = next(3) === 0 ? tabs.splice(next(Math.max(1, tabs.length)), 1) : [];
    if (tab !== undefined)
      await (next(2) === 0
        ? tab.socket.terminate()
        : tab.socket.request('room.leave', { roomId: 'lobby' }).then(() => tab.socket.close()));
    else if (tabs.length < 30) {
      const userId = `user-${next(12)}`;
      tabs.push({ userId, socket: await enter(next(2) === 0 ? one : two, userId) });
    }
    if (next(10) === 0) advance(next(GRACE_MS * 2));
  }
  await openInLobby(world, tabs.length + 2);
  advance(GRACE_MS);
  const present = ['w-one', 'w-two', ...new Set(tabs.map(({ userId }) => userId))].toSorted();
  for (const watcher of watchers) await sees(watcher, ...present);
  for (const { socket } of tabs) await sees(socket, ...present);
  t.strictSame((await restRows(world)).map(({ userId }) => String(userId)).toSorted(), present);
  const last = await enter(one, 'w-one');
  for (const userId of present)
    t.strictSame(
      membersOf(last).get(userId)?.['connections'],
      (await restRows(world)).find((row) => row['userId'] === userId)?.['connections'],
    );
});
