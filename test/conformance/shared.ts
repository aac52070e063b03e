import type { Test } from 'tap';
import type { Shared } from '../../src/ports/shared.ts';

/** Asserts every sentence of ports/shared.ts for an adapter. `open` opens a new, empty memory twice, like two processes. */
export async function sharedConformance(t: Test, open: () => Promise<{ shared: Shared; peer: Shared }>): Promise<void> {
  await t.test('exactly the limit is allowed in any window, in both processes together', async (t) => {
    const { shared, peer } = await open();
    const allowed: number[] = [];
    // 4 000 hits at pseudo-random times, one per 0.2 s on average, with a limit of 100 per minute.
    for (let i = 0, now = 1_000_000, seed = 7; i < 4_000; i++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      now += seed % 400;
      if ((i % 2 === 0 ? shared : peer).hit('ip', 100, 60_000, now).allowed) allowed.push(now);
    }
    const most = Math.max(...allowed.map((start) => allowed.filter((at) => at >= start && at < start + 60_000).length));
    t.equal(most, 100);
    t.ok(allowed.length > 1_000, 'the window slides');
  });

  await t.test('remaining and resetMs are exact, and refused hits are not counted', async (t) => {
    const { shared, peer } = await open();
    t.same(shared.hit('k', 2, 1_000, 5_000), { allowed: true, remaining: 1, resetMs: 1_000 });
    t.same(peer.hit('k', 2, 1_000, 5_400), { allowed: true, remaining: 0, resetMs: 600 });
    t.same(shared.hit('k', 2, 1_000, 5_500), { allowed: false, remaining: 0, resetMs: 500 });
    t.same(shared.hit('k', 2, 1_000, 5_999), { allowed: false, remaining: 0, resetMs: 1 });
    t.same(peer.hit('k', 2, 1_000, 6_000), { allowed: true, remaining: 0, resetMs: 400 });
    t.equal(shared.hit('other', 2, 1_000, 6_000).remaining, 1, 'keys are separate');
    shared.sweepWindows(6_001);
    t.same(peer.hit('k', 2, 1_000, 6_100), { allowed: true, remaining: 1, resetMs: 1_000 });
  });

  await t.test('budgets refill evenly, in both processes together, and refused amounts are not counted', async (t) => {
    const { shared, peer } = await open();
    const spend = (view: Shared, amount: number, now: number, overdraw?: boolean) => view.spend('k', { amount, limit: 100, windowMs: 1_000, now, overdraw });
    t.same(spend(shared, 60, 5_000), { allowed: true, remaining: 40, resetMs: 600 });
    t.same(spend(peer, 50, 5_000), { allowed: false, remaining: 40, resetMs: 100 });
    t.same(spend(peer, 50, 5_100), { allowed: true, remaining: 0, resetMs: 1_000 });
    t.same(spend(shared, 250, 6_000), { allowed: false, remaining: 90, resetMs: 100 });
    t.same(spend(shared, 250, 6_100), { allowed: true, remaining: 0, resetMs: 2_500 }, 'an amount above the limit needs a full budget');
    t.same(spend(peer, 10, 8_000), { allowed: true, remaining: 30, resetMs: 700 });
    t.same(shared.spend('other', { amount: 1, limit: 1, windowMs: 1_000, now: 8_000 }), { allowed: true, remaining: 0, resetMs: 1_000 });
    t.same(shared.hit('other', 1, 1_000, 8_000).allowed, true, 'hits are separate');
    t.same(spend(shared, 200, 20_000, true), { allowed: true, remaining: 0, resetMs: 2_000 });
    t.same(spend(peer, 100, 20_000, true), { allowed: false, remaining: 0, resetMs: 2_000 }, 'an overdraft is counted');
    t.equal(spend(shared, 1, 22_009).allowed, false);
    shared.sweepWindows(22_900);
    t.equal(spend(shared, 1, 22_009).allowed, false, 'budgets that are not full are kept');
    shared.sweepWindows(23_001);
    t.same(peer.spend('k', { amount: 1, limit: 1, windowMs: 1_000, now: 22_009 }), { allowed: true, remaining: 0, resetMs: 1_000 });
  });

  await t.test('counts add up over owners, and those of an ended owner are deleted', async (t) => {
    const { shared, peer } = await open();
    t.equal(shared.total('conn/a'), 0);
    t.equal(shared.count('conn/a', 'w1', 1), 1);
    t.equal(peer.count('conn/a', 'w2', 2), 3);
    t.equal(shared.count('conn/ab', 'w2', 1), 1);
    t.equal(shared.total('conn/a'), 3);
    t.equal(shared.count('conn/a', 'w1', -1), 2);
    t.equal(shared.count('conn/a', 'w1', -1), 2, 'a count does not go below 0');
    peer.deleteOwner('w2');
    t.equal(shared.total('conn/a'), 0);
    t.equal(shared.total('conn/ab'), 0);
  });

  await t.test('records are visible to every process by key and name, and are replaced whatever their owner is', async (t) => {
    const { shared, peer } = await open();
    const record = { key: 'room/a', name: 'two', owner: 'w1', text: 'any text {"with":"spaces"} \u2713' };
    const other = { key: 'room/a', name: 'one', owner: 'w2', text: '' };
    const longer = { key: 'room/ab', name: 'one', owner: 'w2', text: 'of another key' };
    shared.put(record);
    peer.put(other);
    peer.put(longer);
    for (const view of [shared, peer]) t.strictSame(view.list('room/a'), [other, record]);
    t.strictSame(shared.list('room'), []);
    for (const view of [shared, peer]) t.strictSame(view.get('room/a', 'two'), record);
    for (const [key, name] of [['room/a', 'three'], ['room/ab', 'two'], ['room', 'a two']] as const) t.equal(shared.get(key, name), undefined);

    const taken = { ...record, owner: '', text: 'without an owner' };
    peer.put(taken);
    t.strictSame(shared.list('room/a'), [other, taken]);
    shared.delete('room/a', 'one');
    shared.delete('room/a', 'unknown');
    t.equal(peer.get('room/a', 'one'), undefined);
    t.strictSame(shared.get('room/a', 'two'), taken);
    t.strictSame(peer.list('room/a'), [taken]);
    t.strictSame(peer.list('room/ab'), [longer]);
  });

  await t.test('the records of an ended owner are deleted, and no others', async (t) => {
    const { shared, peer } = await open();
    const of = (owner: string, key: string) => ({ key, name: `n${owner}`, owner, text: owner });
    for (const key of ['k1', 'k2']) for (const owner of ['w1', 'w11', '']) shared.put(of(owner, key));
    t.strictSame(peer.listByOwner('w1'), [of('w1', 'k1'), of('w1', 'k2')]);
    t.strictSame(peer.listByOwner(''), [of('', 'k1'), of('', 'k2')]);
    peer.deleteOwner('w1');
    t.strictSame(shared.listByOwner('w1'), []);
    t.strictSame(shared.list('k1'), [of('', 'k1'), of('w11', 'k1')]);
    t.equal(shared.listByOwner('w11').length, 2);
  });
}
