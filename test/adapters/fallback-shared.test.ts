import t from 'tap';
import { openLmdbShared } from '../../src/adapters/lmdb/shared.ts';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { FallbackShared } from '../../src/adapters/fallback/shared.ts';
import { LEASE_MS } from '../../src/ports/shared.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { partsOf } from '../conformance/shared-leases.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { endHolderOf, storedIn } from '../helpers/shared-holder.ts';
import { noSmallDisk, smallDisk } from '../helpers/small-disk.ts';

let folder = 0;

await sharedConformance(t, async () => {
  const path = `${t.testdir()}/${folder++}`;
  const clock = new ManualClock(0);
  const [shared, peer] = [openLmdbShared({ path, clock }), openLmdbShared({ path, clock })].map(
    (view) => new FallbackShared(view, clock),
  );
  if (shared === undefined || peer === undefined) throw new Error('two views were expected');
  t.teardown(() => Promise.all([shared.close(), peer.close()]));
  return { shared, peer, clock, stored: storedIn(t, path), endProcess: (t) => endHolderOf(t, path) };
});

await t.test(
  'on a full disk it counts locally, and writes its changes when there is space again',
  { skip: noSmallDisk },
  async (t) => {
    const disk = smallDisk(t, 2);
    const path = `${disk.path}/shared`;
    const [shared, peer] = [new FallbackShared(openLmdbShared({ path })), openLmdbShared({ path })];
    await shared.hit('before', 2, 60_000);
    await shared.beginLease('w1');
    await shared.count('conn', 'w1', 2);
    await shared.put({ key: 'room', name: 'gone', owner: 'w1', text: 'x' });
    disk.fill();
    const hits = await Promise.all(Array.from({ length: 5 }, () => shared.hit('ip', 3, 60_000)));
    t.strictSame(
      hits.map(({ allowed }) => allowed),
      [true, true, true, false, false],
      'the limit holds in each process',
    );
    t.equal(await shared.count('conn', 'w1', 1), 3);
    t.equal(await shared.count('conn', 'w1', -2), 1);
    t.equal(await shared.total('conn'), 1);
    await shared.put({ key: 'room', name: 'new', owner: 'w1', text: 'y' });
    await shared.put({ key: 'room', name: 'new', owner: 'w1', text: 'z' });
    await shared.delete('room', 'gone');
    t.equal(await peer.total('conn'), 2, 'other processes do not see it');
    disk.empty();
    while ((await peer.total('conn')) !== 1) await shared.hit('ip', 3, 60_000);
    t.equal(await shared.total('conn'), 1);
    t.strictSame((await peer.list('room')).map(partsOf), [{ key: 'room', name: 'new', owner: 'w1', text: 'z' }]);
    await Promise.all([shared.close(), peer.close()]);
  },
);

await t.test('on a full disk a lease can be renewed', { skip: noSmallDisk }, async (t) => {
  const disk = smallDisk(t, 2);
  const [path, clock] = [`${disk.path}/shared`, new ManualClock(0)];
  const [shared, peer] = [new FallbackShared(openLmdbShared({ path, clock }), clock), openLmdbShared({ path, clock })];
  await shared.beginLease('w1');
  await shared.count('conn', 'w1', 2);
  // From then on a renewal reuses the space of earlier ones.
  for (let renewals = 0; renewals < 4; renewals++) await shared.renewLease('w1');
  disk.fill();
  for (let renewals = 0; renewals < 8; renewals++) {
    clock.advance(LEASE_MS / 2);
    t.equal(await shared.renewLease('w1'), true);
  }
  t.equal(await peer.total('conn'), 2);
  await Promise.all([shared.close(), peer.close()]);
});

await t.test('a lease that begins again counts nothing that waited for the disk', { skip: noSmallDisk }, async (t) => {
  const disk = smallDisk(t, 2);
  const [path, clock] = [`${disk.path}/shared`, new ManualClock(0)];
  const [shared, peer] = [new FallbackShared(openLmdbShared({ path, clock }), clock), openLmdbShared({ path, clock })];
  await shared.beginLease('w1');
  disk.fill();
  for (let n = 0; n < 3_000; n++) await shared.count(`conn/${n}`, 'w1', 1);
  clock.advance(LEASE_MS);
  disk.empty();
  while (!(await peer.renewLease('w1'))) await shared.beginLease('w1');
  await shared.count('conn/2999', 'w1', 1);
  while ((await peer.total('conn/2999')) === 0) await shared.hit('ip', 3, 60_000);
  t.strictSame([await shared.total('conn/2998'), await shared.total('conn/2999')], [0, 1]);
  await Promise.all([shared.close(), peer.close()]);
});

await t.test('any other error is thrown', async (t) => {
  const broken = Object.assign(new MemoryShared(), {
    hit: () => Promise.reject(new Error('closed')),
    count: () => Promise.reject(new Error('closed')),
  });
  const shared = new FallbackShared(broken);
  await t.rejects(shared.hit('k', 1, 1), { message: 'closed' });
  await t.rejects(shared.count('k', 'w', 1), { message: 'closed' });
});
