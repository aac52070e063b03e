import type { Test } from 'tap';
import type { Shared } from '../../src/ports/shared.ts';
import type { ManualClock } from '../doubles/manual-clock.ts';
import { leaseConformance, partsOf } from './shared-leases.ts';

/** A new, empty memory that is opened twice, like in two processes. */
export interface OpenShared {
  readonly shared: Shared;
  readonly peer: Shared;
  /** The time of the memory. */
  readonly clock: ManualClock;
  /** How many leases, counts and records the memory has, also those that it does not show. Absent if unknown. */
  readonly stored?: (() => number) | undefined;
  /**
   * Starts a process that uses the memory, and kills it. Returns a function that says whether the memory still holds
   * what is its. Absent if processes hold nothing in the memory.
   */
  readonly endProcess?: ((t: Test) => Promise<() => boolean>) | undefined;
}

/** A key that is too long for some adapters: they reject it. */
const LONG_KEY = 'k'.repeat(5_000);

/** Asserts every sentence of ports/shared.ts for an adapter. */
export async function sharedConformance(t: Test, open: () => Promise<OpenShared>): Promise<void> {
  await leaseConformance(t, open);

  await t.test('exactly the limit is allowed in any window, in both processes together', async (t) => {
    const { shared, peer, clock } = await open();
    const allowed: number[] = [];
    // 4 000 hits at pseudo-random times, one per 0.2 s on average, with a limit of 100 per minute.
    for (let i = 0, seed = 7; i < 4_000; i++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      clock.advance(seed % 400);
      if ((await (i % 2 === 0 ? shared : peer).hit('ip', 100, 60_000)).allowed) allowed.push(clock.monotonic());
    }
    const most = Math.max(...allowed.map((start) => allowed.filter((at) => at >= start && at < start + 60_000).length));
    t.equal(most, 100);
    t.ok(allowed.length > 1_000, 'the window slides');
  });

  await t.test('remaining and resetMs are exact, and refused hits are not counted', async (t) => {
    const { shared, peer, clock } = await open();
    t.same(await shared.hit('k', 2, 1_000), { allowed: true, remaining: 1, resetMs: 1_000 });
    clock.advance(400);
    t.same(await peer.hit('k', 2, 1_000), { allowed: true, remaining: 0, resetMs: 600 });
    clock.advance(100);
    t.same(await shared.hit('k', 2, 1_000), { allowed: false, remaining: 0, resetMs: 500 });
    clock.advance(499);
    t.same(await shared.hit('k', 2, 1_000), { allowed: false, remaining: 0, resetMs: 1 });
    clock.advance(1);
    t.same(await peer.hit('k', 2, 1_000), { allowed: true, remaining: 0, resetMs: 400 });
    t.equal((await shared.hit('other', 2, 1_000)).remaining, 1, 'keys are separate');
    clock.advance(100);
    await shared.sweep(99);
    t.same(await peer.hit('k', 2, 1_000), { allowed: true, remaining: 1, resetMs: 1_000 });
  });

  await t.test(
    'sweep deletes the windows without a recent hit, and keeps the others with all of their hits',
    async (t) => {
      const { shared, peer, clock } = await open();
      for (const [key, after] of [
        ['old', 0],
        ['both', 1_000],
        ['old', 999],
        ['at', 1],
        ['both', 1_000],
      ] as const) {
        clock.advance(after);
        await shared.hit(key, 5, 10_000);
      }
      await peer.sweep(1_000);
      clock.advance(500);
      const remaining = await Promise.all(
        ['old', 'at', 'both'].map(async (key) => (await shared.hit(key, 5, 10_000)).remaining),
      );
      t.strictSame(remaining, [4, 3, 2]);
    },
  );

  await t.test('budgets refill evenly, in both processes together, and refused amounts are not counted', async (t) => {
    const { shared, peer, clock } = await open();
    const spend = (view: Shared, amount: number, overdraw?: boolean) =>
      view.spend('k', { amount, limit: 100, windowMs: 1_000, overdraw });
    t.same(await spend(shared, 60), { allowed: true, remaining: 40, resetMs: 600 });
    t.same(await spend(peer, 50), { allowed: false, remaining: 40, resetMs: 100 });
    clock.advance(100);
    t.same(await spend(peer, 50), { allowed: true, remaining: 0, resetMs: 1_000 });
    clock.advance(900);
    t.same(await spend(shared, 250), { allowed: false, remaining: 90, resetMs: 100 });
    clock.advance(100);
    t.same(
      await spend(shared, 250),
      { allowed: true, remaining: 0, resetMs: 2_500 },
      'an amount above the limit needs a full budget',
    );
    clock.advance(1_900);
    t.same(await spend(peer, 10), { allowed: true, remaining: 30, resetMs: 700 });
    t.same(await shared.spend('other', { amount: 1, limit: 1, windowMs: 1_000 }), {
      allowed: true,
      remaining: 0,
      resetMs: 1_000,
    });
    t.same((await shared.hit('other', 1, 1_000)).allowed, true, 'hits are separate');
    clock.advance(12_000);
    t.same(await spend(shared, 200, true), { allowed: true, remaining: 0, resetMs: 2_000 });
    t.same(await spend(peer, 100, true), { allowed: false, remaining: 0, resetMs: 2_000 }, 'an overdraft is counted');
    clock.advance(2_009);
    t.equal((await spend(shared, 1)).allowed, false);
    await shared.sweep(0);
    t.equal((await spend(shared, 1)).allowed, false, 'budgets that are not full are kept');
    clock.advance(992);
    await shared.sweep(0);
    t.same(await peer.spend('k', { amount: 1, limit: 1, windowMs: 1_000 }), {
      allowed: true,
      remaining: 0,
      resetMs: 1_000,
    });
  });

  await t.test('calls that are not awaited take effect in their order', async (t) => {
    const { shared, peer, clock } = await open();
    await shared.beginLease('w2');
    const record = (name: string, text: string, owner = 'w1') => ({ key: 'k', name, owner, text });
    const calls = [
      shared.beginLease('w1'),
      shared.put(record('a', '1')),
      shared.put(record('b', '1')),
      shared.put(record('a', '2', '')),
      shared.delete('k', 'b'),
      shared.put(record('b', '2')),
      shared.count('c', 'w1', 3),
      shared.beginLease('w1'),
      shared.put(record('c', '1', 'w2')),
      shared.count('c', 'w1', 1),
      shared.renewLease('w1'),
      shared.put(record('d', '1')),
      shared.endLease('w1', 0),
      shared.renewLease('w1'),
      shared.beginLease('w1'),
      shared.count('c', 'w1', 2),
      shared.hit('h', 1, 1_000),
      shared.hit('h', 1, 1_000),
    ];
    const [listed, got, total] = [shared.list('k'), shared.get('k', 'b'), shared.total('c')];
    const stored = [record('a', '2', ''), record('c', '1', 'w2')];
    t.strictSame(
      await listed,
      stored.map((written) => ({ ...written, putAt: clock.monotonic(), expiresInMs: null })),
    );
    t.equal(await got, undefined);
    t.equal(await total, 2);
    const answers = await Promise.all(calls);
    t.strictSame([answers[10], answers[13]], [true, false]);
    t.match(answers.slice(-2), [{ allowed: true }, { allowed: false }]);
    t.strictSame(await peer.list('k'), await listed);
  });

  await t.test('a call that rejects keeps no later call from taking effect, and not their order', async (t) => {
    const { shared, peer } = await open();
    await shared.beginLease('w1');
    const record = (key: string, text: string) => ({ key, name: 'n', owner: 'w1', text });
    const calls = [
      shared.put(record('k', '1')),
      shared.put(record(LONG_KEY, 'x')),
      shared.count(LONG_KEY, 'w1', 1),
      shared.hit(LONG_KEY, 1, 1_000),
      shared.count('c', 'w1', 1),
      shared.put(record('k', '2')),
      shared.delete(LONG_KEY, 'n'),
      shared.hit('h', 1, 1_000),
      shared.count('c', 'w1', 1),
    ];
    const outcomes = await Promise.allSettled<unknown>(calls);
    t.strictSame(
      [0, 4, 5, 7, 8].map((i) => outcomes[i]?.status),
      Array.from({ length: 5 }, () => 'fulfilled'),
    );
    for (const view of [shared, peer]) {
      t.strictSame((await view.list('k')).map(partsOf), [record('k', '2')]);
      t.equal(await view.total('c'), 2);
    }
    t.equal((await peer.hit('h', 1, 1_000)).allowed, false);
    await shared.put(record('k', '3'));
    const last = await peer.get('k', 'n');
    t.strictSame(last && partsOf(last), record('k', '3'));
  });

  await t.test('exactly the limit of concurrent calls of both processes is allowed', async (t) => {
    const { shared, peer } = await open();
    const views = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? shared : peer));
    const hits = await Promise.all(views.map((view) => view.hit('h', 7, 1_000)));
    t.equal(hits.filter(({ allowed }) => allowed).length, 7);
    const spent = await Promise.all(views.map((view) => view.spend('s', { amount: 10, limit: 100, windowMs: 1_000 })));
    t.equal(spent.filter(({ allowed }) => allowed).length, 10);
    await Promise.all(['w0', 'w1'].map((owner) => shared.beginLease(owner)));
    const totals = await Promise.all(views.map((view, i) => view.count('c', `w${i % 2}`, 1)));
    t.strictSame(
      totals.sort((a, b) => a - b),
      views.map((_, i) => i + 1),
      'each call returns the total after it',
    );
  });

  await t.test('close waits for the calls that were made before', async (t) => {
    const { shared, peer } = await open();
    const record = { key: 'k', name: 'n', owner: 'w', text: 't' };
    const begun = shared.beginLease('w');
    const put = shared.put(record);
    const total = shared.count('c', 'w', 1);
    const listed = shared.list('k');
    await shared.close();
    await Promise.all([begun, put]);
    t.equal(await total, 1);
    t.strictSame((await listed).map(partsOf), [record]);
    if (shared !== peer) t.strictSame((await peer.list('k')).map(partsOf), [record]);
  });

  await t.test('maintain changes nothing that is shown', async (t) => {
    const { shared, peer } = await open();
    await shared.put({ key: 'k', name: 'n', owner: '', text: 't' });
    await shared.maintain();
    t.equal((await peer.list('k')).length, 1);
  });

  await t.test('maintain frees what ended processes have held', async (t) => {
    const { shared, endProcess } = await open();
    const holds = await endProcess?.(t);
    if (holds !== undefined) t.equal(holds(), true, 'until maintain');
    await shared.maintain();
    if (holds !== undefined) t.equal(holds(), false);
  });
}
