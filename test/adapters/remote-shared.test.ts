import t, { type Test } from 'tap';
import { RemoteShared } from '../../src/adapters/fallback/remote-shared.ts';
import { openRedis } from '../../src/adapters/redis/open.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { LEASE_MS, type Shared } from '../../src/ports/shared.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { cutShared } from '../doubles/cut-shared.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';

/** Two processes with leases that share a memory. */
async function openTwo() {
  const clock = new ManualClock(0);
  const memory = new MemoryShared(clock);
  const [link, peerLink] = [cutShared(memory), cutShared(memory)];
  const [shared, peer] = [new RemoteShared(link.shared, clock), new RemoteShared(peerLink.shared, clock)];
  await shared.beginLease('w1');
  await peer.beginLease('w2');
  t.equal(await shared.renewLease('w1'), true);
  return { clock, memory, link, peerLink, shared, peer };
}

/** What a worker does that finds that it has no lease: it writes its entries again. */
async function renew(shared: RemoteShared, owner: string, sockets: number): Promise<boolean> {
  if (await shared.renewLease(owner)) return true;
  const writes: Promise<unknown>[] = [shared.beginLease(owner), shared.count('sockets', owner, sockets)];
  writes.push(shared.put({ key: 'room', name: owner, owner, text: '' }));
  await Promise.all(writes);
  return false;
}

const namesIn = async (shared: Shared): Promise<string[]> => (await shared.list('room')).map(({ name }) => name);
const allowedOf = async (shared: Shared, key: string, limit: number): Promise<number> => {
  let allowed = 0;
  for (let hits = 0; hits < 2 * limit; hits++) if ((await shared.hit(key, limit, 60_000)).allowed) allowed++;
  return allowed;
};

await t.test('RemoteShared keeps the contract of Shared memory', (t) =>
  sharedConformance(t, async () => {
    const clock = new ManualClock(0);
    const memory = new MemoryShared(clock);
    const [shared, peer] = [new DelayedShared(memory), new DelayedShared(memory)];
    return { shared: new RemoteShared(shared, clock), peer: new RemoteShared(peer, clock), clock };
  }),
);

await t.test('while the memory is out of reach, each process allows its share of a limit', async (t) => {
  const { link, peerLink, shared, peer } = await openTwo();
  t.equal(await allowedOf(shared, 'before', 10), 10);
  link.cut = true;
  t.equal(await allowedOf(shared, 'ip', 10), 5);
  t.equal(await allowedOf(shared, 'small', 1), 1, 'at least one');
  t.equal((await shared.hit('none', 0, 1_000)).allowed, false);
  const spend = () => shared.spend('b', { amount: 3, limit: 10, windowMs: 60_000 });
  t.strictSame([(await spend()).allowed, (await spend()).allowed], [true, false]);
  t.equal(await allowedOf(peer, 'ip', 10), 10, 'whoever reaches it counts there');
  peerLink.cut = true;
  link.cut = false;
  await until(async () => (await shared.hit('probe', 1_000_000, 60_000)).remaining > 500_000);
  t.equal(await allowedOf(shared, 'after', 10), 10, 'and all of it again afterwards');
});

await t.test('entries are those of this process while the memory is out of reach, and once afterwards', async (t) => {
  const { link, shared, peer } = await openTwo();
  await renew(shared, 'w1', 2);
  for (const [view, owner] of [
    [shared, 'w1'],
    [peer, 'w2'],
  ] as const) {
    await view.count('sockets', owner, 2);
    await view.put({ key: 'room', name: owner, owner, text: '' });
  }
  t.strictSame([shared.isPartial(), shared.wantsRenewal()], [false, false]);

  link.cut = true;
  await shared.count('sockets', 'w1', 1);
  t.equal(shared.wantsRenewal(), true);
  await t.rejects(shared.list('room'), { code: 'storage_unavailable' }, 'nobody seems to have left');
  t.equal(await renew(shared, 'w1', 3), false);
  t.strictSame([shared.isPartial(), shared.wantsRenewal()], [true, false]);
  t.equal(await renew(shared, 'w1', 3), true, 'once');
  t.strictSame([await shared.total('sockets'), await namesIn(shared)], [3, ['w1']]);
  t.equal(await shared.count('sockets', 'w1', 1), 4);
  await shared.put({ key: 'room', name: 'new', owner: 'w1', text: '' });
  await shared.delete('room', 'w1');
  t.strictSame(await namesIn(shared), ['new']);
  t.strictSame([await peer.total('sockets'), await namesIn(peer)], [4, ['w1', 'w2']], 'the others see the lease');

  link.cut = false;
  await until(async () => (await shared.hit('probe', 1_000_000, 60_000), shared.wantsRenewal()));
  t.equal(await renew(shared, 'w1', 4), false);
  t.equal(shared.isPartial(), false);
  t.strictSame([await peer.total('sockets'), await namesIn(peer)], [6, ['w1', 'w2']]);
  t.equal(await renew(shared, 'w1', 4), true);
});

await t.test('one call that fails makes the owner write its entries again', async (t) => {
  const { clock, link, shared, peer } = await openTwo();
  await renew(shared, 'w1', 0);
  link.cut = true;
  await shared.count('sockets', 'w1', 1);
  link.cut = false;
  t.equal(shared.wantsRenewal(), true);
  t.equal(await renew(shared, 'w1', 1), false);
  t.equal(shared.isPartial(), false);
  t.equal(await peer.total('sockets'), 1);
  clock.advance(LEASE_MS);
  t.equal(await renew(shared, 'w1', 1), false, 'as after a lease that has ended');
  t.equal(await peer.total('sockets'), 1);
});

await t.test('any other error is thrown', async (t) => {
  const fail = () => Promise.reject(new Error('closed'));
  const shared = new RemoteShared(Object.assign(new MemoryShared(), { hit: fail, count: fail, list: fail }));
  await t.rejects(shared.hit('k', 1, 1), { message: 'closed' });
  await t.rejects(shared.count('k', 'w', 1), { message: 'closed' });
  await t.rejects(shared.list('k'), { message: 'closed' });
});

await t.test('over a Redis that is killed and starts again', { skip: skipWithout(...REDIS) }, async (t: Test) => {
  const redis = await startRedis(t);
  const opened = await Promise.all([0, 1].map(() => openRedis({ url: redis.url, answerMs: 30_000 })));
  t.teardown(() => Promise.all(opened.map((one) => one.close())));
  const [shared, peer] = opened.map((one) => new RemoteShared(one.shared));
  if (shared === undefined || peer === undefined) throw new Error('two views were expected');
  await Promise.all([renew(shared, 'w1', 1), renew(peer, 'w2', 1)]);
  await until(async () => (await renew(shared, 'w1', 1)) && (await renew(peer, 'w2', 1)));
  t.equal(await shared.total('sockets'), 2);
  await redis.kill();
  await until(
    async () => (await renew(shared, 'w1', 1), await renew(peer, 'w2', 1), shared.isPartial() && peer.isPartial()),
  );
  t.equal((await allowedOf(shared, 'ip', 10)) + (await allowedOf(peer, 'ip', 10)), 10);
  t.equal(await shared.total('sockets'), 1);
  await redis.restart();
  await until(
    async () =>
      (await renew(shared, 'w1', 1)) && (await renew(peer, 'w2', 1)) && !shared.isPartial() && !peer.isPartial(),
  );
  t.strictSame([await shared.total('sockets'), await namesIn(peer)], [2, ['w1', 'w2']]);
});
