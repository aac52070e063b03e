import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { START } from '../helpers/realtime.ts';
import { GRACE_MS } from '../../src/domain/rooms/presence.ts';
import { LEASE_MS, type SharedRecord } from '../../src/ports/shared.ts';
import {
  flushBus,
  membersOf,
  namesOf,
  openInLobby,
  presenceFrames,
  refresh,
  restRows,
  sees,
  startTwoWorkers,
  stateOf,
} from '../helpers/presence.ts';
import type { TestSocket } from '../helpers/socket.ts';

/** Within this time a worker reads all memberships of a room again. */
const REPAIR_MS = 5_000;

/** Counts how often all memberships of a room are read; reads can be made to fail. */
class WatchedShared extends MemoryShared {
  lists = 0;
  failing = false;

  override async get(key: string, name: string): Promise<SharedRecord | undefined> {
    this.#check();
    return super.get(key, name);
  }

  override async list(key: string): Promise<SharedRecord[]> {
    this.#check();
    this.lists++;
    return super.list(key);
  }

  #check(): void {
    if (this.failing) throw new Error('the read was made to fail');
  }
}

const changesOf = (socket: TestSocket, userId: string): string[] =>
  presenceFrames(socket).flatMap(({ type, data }) =>
    data?.['userId'] === userId ? [type.replace('presence.', '')] : [],
  );

await t.test('who joins a room first gets the snapshot of one reading, once changes are announced', async (t) => {
  const clock = new ManualClock(START);
  const shared = new WatchedShared(clock);
  const { one, enter } = await startTwoWorkers(t, {}, { shared, clock });
  await sees(await enter(one, 'ann'), 'ann');
  t.equal(shared.lists, 2, 'one for the time at which the user came, and one for the snapshot');
});

await t.test('a change makes no worker read the whole room', async (t) => {
  const clock = new ManualClock(START);
  const shared = new WatchedShared(clock);
  const { one, two, enter, advance } = await startTwoWorkers(t, {}, { shared, clock });
  const near = await enter(one, 'near');
  const far = await enter(two, 'far');
  const ann = await enter(one, 'ann');
  for (const socket of [near, far]) await sees(socket, 'near', 'far', 'ann');
  shared.lists = 0;
  await ann.request('presence.update', { roomId: 'lobby', state: { at: 1 } });
  for (const socket of [near, far]) await socket.until(() => stateOf(socket, 'ann')['at'] === 1);
  await ann.request('room.leave', { roomId: 'lobby' });
  for (const socket of [near, far]) await sees(socket, 'near', 'far');
  t.equal(shared.lists, 0, 'neither an update nor a leave');
  await ann.request('room.join', { roomId: 'lobby' });
  for (const socket of [near, far]) await sees(socket, 'near', 'far', 'ann');
  t.equal(shared.lists, 1, 'joining looks for other tabs of the user, once');
  advance(REPAIR_MS);
  await refresh(near);
  await refresh(far);
  t.equal(shared.lists, 3, 'each worker reads the room from time to time');
});

await t.test('lost messages are repaired within five seconds', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const [ann, bob] = [await enter(one, 'ann', { at: 1 }), await enter(one, 'bob')];
  await sees(watcher, 'watcher', 'ann', 'bob');
  one.bus.holding = true;
  await enter(one, 'carol');
  await ann.request('presence.update', { roomId: 'lobby', state: { at: 2 } });
  await bob.request('room.leave', { roomId: 'lobby' });
  await sees(ann, 'watcher', 'ann', 'carol');
  one.bus.release([]);
  await flushBus(ann, watcher);
  t.strictSame(namesOf(watcher), ['ann', 'bob', 'watcher'], 'the messages are lost');
  advance(REPAIR_MS);
  await sees(watcher, 'watcher', 'ann', 'carol');
  await watcher.until(() => stateOf(watcher, 'ann')['at'] === 2);
  t.strictSame(changesOf(watcher, 'bob'), ['joined', 'left']);
  t.strictSame(
    [...membersOf(watcher).values()]
      .map(({ connections, userId }) => ({ userId, connections }))
      .toSorted((a, b) => String(a.userId).localeCompare(String(b.userId))),
    [
      { userId: 'ann', connections: 1 },
      { userId: 'carol', connections: 1 },
      { userId: 'watcher', connections: 1 },
    ],
  );
  t.equal((await restRows(world)).length, 3);
});

await t.test('after a failed read, the next change reads the whole room', async (t) => {
  const clock = new ManualClock(START);
  const shared = new WatchedShared(clock);
  const { two, one, enter } = await startTwoWorkers(t, {}, { shared, clock });
  const watcher = await enter(two, 'watcher');
  const [ann, bob] = [await enter(one, 'ann'), await enter(one, 'bob')];
  await sees(watcher, 'watcher', 'ann', 'bob');
  shared.failing = true;
  await ann.request('presence.update', { roomId: 'lobby', state: { at: 1 } });
  await flushBus(ann, watcher);
  t.equal((await watcher.request('room.join', { roomId: 'lobby' })).error?.code, 'internal', 'the read fails');
  shared.failing = false;
  await bob.request('room.leave', { roomId: 'lobby' });
  await sees(watcher, 'watcher', 'ann');
  t.strictSame(stateOf(watcher, 'ann'), { at: 1 });
});

await t.test('a message that arrives late undoes nothing', async (t) => {
  const { one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const [ann, bob] = [await enter(one, 'ann', { at: 1 }), await enter(one, 'bob')];
  await sees(watcher, 'watcher', 'ann', 'bob');
  one.bus.holding = true;
  // A join and a leave of one user, a leave and a join of another, and two states of a third.
  const carol = await enter(one, 'carol');
  await carol.request('room.leave', { roomId: 'lobby' });
  await bob.request('room.leave', { roomId: 'lobby' });
  await bob.request('room.join', { roomId: 'lobby', state: { back: true } });
  for (const at of [2, 3]) await ann.request('presence.update', { roomId: 'lobby', state: { at } });
  advance(REPAIR_MS);
  await watcher.until(() => stateOf(watcher, 'ann')['at'] === 3);
  t.strictSame(stateOf(watcher, 'bob'), { back: true }, 'the repair comes before the messages');
  const received = presenceFrames(watcher).length;
  one.bus.release(one.bus.take().toReversed());
  await flushBus(ann, watcher);
  await refresh(watcher);
  t.strictSame(
    presenceFrames(watcher)
      .slice(received)
      .map(({ type }) => type),
    ['presence.snapshot'],
  );
  t.strictSame([namesOf(watcher), stateOf(watcher, 'ann')], [['ann', 'bob', 'watcher'], { at: 3 }]);
  t.strictSame(changesOf(watcher, 'carol'), [], 'a user whose join and leave are both past is never seen');
  t.strictSame(changesOf(watcher, 'bob'), ['joined', 'updated']);
});

await t.test('a join and the end of a grace period in any order of messages is one joined and one left', async (t) => {
  const { one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  const local = await enter(one, 'local');
  await sees(watcher, 'watcher', 'local');
  one.bus.holding = true;
  const ann = await enter(one, 'ann');
  await ann.terminate();
  while (one.realtime.connections() > 1) await new Promise((resolve) => setImmediate(resolve));
  const [joined, ...lost] = one.bus.take();
  if (joined === undefined) throw new Error('the join was to be held back');
  one.bus.release([...lost, joined]);
  await sees(watcher, 'watcher', 'local', 'ann');
  advance(GRACE_MS - 1);
  await enter(two, 'witness');
  await sees(watcher, 'watcher', 'local', 'ann', 'witness');
  advance(1);
  await sees(watcher, 'watcher', 'local', 'witness');
  one.bus.release([joined, ...lost]);
  await flushBus(local, watcher);
  await refresh(watcher);
  t.strictSame(changesOf(watcher, 'ann'), ['joined', 'left']);
});

await t.test('a worker whose lease has ended shows its users and counts its sockets again', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const { shared } = world.ctx;
  const watcher = await enter(two, 'watcher');
  const ann = await enter(one, 'ann', { at: 1 });
  await sees(watcher, 'watcher', 'ann');
  advance(LEASE_MS / 4 - 1);
  const waiting = one.open({}, `?key=${world.key}`);
  await waiting.opened;
  const pending = (): Promise<number> => shared.total('pending-sockets/127.0.0.1');
  while ((await pending()) === 0) await new Promise((resolve) => setImmediate(resolve));
  const counts = async (): Promise<unknown> => [
    (await restRows(world)).map(({ userId, state, joinedAt }) => ({ userId, state, joinedAt })),
    await shared.total(`conn/${world.environment.id}/ann`),
    await pending(),
  ];
  const before = await counts();
  await shared.endLease('w1', 0);
  t.match(await counts(), [[{ userId: 'watcher' }], 0, 0]);
  advance(1);
  while ((await pending()) === 0) await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(await counts(), before);
  await sees(watcher, 'watcher', 'ann');
  t.strictSame(stateOf(watcher, 'ann'), { at: 1 });

  await ann.terminate();
  await waiting.terminate();
  while (one.realtime.connections() > 0) await new Promise((resolve) => setImmediate(resolve));
  t.match(await counts(), [[{ userId: 'ann' }, { userId: 'watcher' }], 0, 0], 'each was counted once');
  advance(GRACE_MS);
  await sees(watcher, 'watcher');
});

await t.test('a worker that renews its lease is shown for as long as it runs', async (t) => {
  const { one, two, enter, advance } = await startTwoWorkers(t);
  const watcher = await enter(two, 'watcher');
  await enter(one, 'ann');
  await sees(watcher, 'watcher', 'ann');
  for (let passed = 0; passed < 3 * LEASE_MS; passed += LEASE_MS / 4) {
    advance(LEASE_MS / 4);
    await refresh(watcher);
  }
  t.strictSame(changesOf(watcher, 'ann'), ['joined']);
});

await t.test('with messages lost, late and out of order, all sockets see the same room in the end', async (t) => {
  const { world, one, two, enter, advance } = await startTwoWorkers(t);
  const watchers = await Promise.all([enter(one, 'w-one'), enter(two, 'w-two')]);
  let seed = 5;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  const tabs: { userId: string; socket: TestSocket }[] = [];
  for (let step = 0; step < 150; step++) {
    const worker = next(2) === 0 ? one : two;
    worker.bus.holding = true;
    const tab = tabs[next(Math.max(1, tabs.length))];
    const action = next(4);
    if (tab === undefined || (action === 0 && tabs.length < 20)) {
      const userId = `user-${next(8)}`;
      tabs.push({ userId, socket: await enter(worker, userId) });
    } else if (action === 1) {
      tabs.splice(tabs.indexOf(tab), 1);
      await (next(2) === 0
        ? tab.socket.terminate()
        : tab.socket.request('room.leave', { roomId: 'lobby' }).then(() => tab.socket.close()));
    } else await tab.socket.request('presence.update', { roomId: 'lobby', state: { step } });
    if (next(3) === 0)
      for (const { bus } of [one, two])
        bus.release(
          bus
            .take()
            .filter(() => next(3) > 0)
            .toSorted(() => next(3) - 1),
        );
    if (next(8) === 0) advance(next(GRACE_MS));
  }
  for (const { bus } of [one, two]) bus.release([]);
  await openInLobby(world, tabs.length + 2);
  advance(GRACE_MS);
  const present = ['w-one', 'w-two', ...new Set(tabs.map(({ userId }) => userId))].toSorted();
  const expected = await restRows(world);
  t.strictSame(expected.map(({ userId }) => String(userId)).toSorted(), present);
  for (const socket of [...watchers, ...tabs.map((tab) => tab.socket)]) {
    await sees(socket, ...present);
    for (const { userId, state, connections } of expected) {
      await socket.until(
        () => JSON.stringify(stateOf(socket, String(userId))) === JSON.stringify(state),
        `the state of ${String(userId)}`,
      );
      await socket.until(
        () => membersOf(socket).get(String(userId))?.['connections'] === connections,
        `the tabs of ${String(userId)}`,
      );
    }
  }
});
