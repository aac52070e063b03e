import t from 'tap';
import { openPostgresShared } from '../../src/adapters/postgres/shared/shared.ts';
import type { RateLimitResult, Shared } from '../../src/ports/shared.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { type Postgres, POSTGRES, startPgbouncer, startPostgres } from '../helpers/engines/postgres.ts';
import { startTcpProxy } from '../helpers/engines/tcp-proxy.ts';
import { until } from '../helpers/cluster.ts';

const skip = skipWithout(...POSTGRES, 'pgbouncer');
const PROCESSES = 4;
const WINDOW_MS = 3_600_000;
/** Enough for a busy machine: a call that takes longer rejects. */
const PATIENCE_MS = 30_000;

/** Opens shared memory as so many processes would. */
async function openViews(url: string, patienceMs = PATIENCE_MS): Promise<Shared[]> {
  const options = { option: 'store.url', url, patienceMs } as const;
  return Promise.all(Array.from({ length: PROCESSES }, () => openPostgresShared(options)));
}

/** Ends what the server does for shared memory. */
const terminate = (postgres: Postgres): string =>
  postgres.sql(
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'collab shared'",
  );

const closeAll = (views: readonly Shared[]): Promise<unknown> => Promise.all(views.map((view) => view.close()));

/** Calls of several keys in an order that differs from view to view, and what ends and sweeps leases. Returns the hits. */
async function load(views: readonly Shared[], rounds: number, onRound: () => void): Promise<RateLimitResult[]> {
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const calls = views.map(async (view, v) => {
    const [owner, hits] = [`w${v}`, [] as RateLimitResult[]];
    await view.beginLease(owner);
    for (let round = 0; round < rounds; round++) {
      const order = v % 2 === 0 ? keys : keys.toReversed();
      const answers = await Promise.all([
        view.hit('one', 80, WINDOW_MS),
        ...order.map((key) => view.count(key, owner, 1)),
        ...order.map((name) => view.put({ key: 'room', name, owner, text: `${round}` })),
        view.spend('budget', { amount: 1, limit: 1_000, windowMs: WINDOW_MS * 1_000 }),
        ...(round % 10 === v ? [view.sweep(WINDOW_MS), view.renewLease(owner), view.beginLease(`other-${v}`)] : []),
      ]);
      hits.push(answers[0]);
      onRound();
    }
    return hits;
  });
  return (await Promise.all(calls)).flat();
}

if (skip !== false) t.plan(0, skip);
else {
  const postgres = await startPostgres(t);

  await t.test('no call is lost or counted twice while connections are ended and cut at any byte', async (t) => {
    const bouncer = await startPgbouncer(t, postgres);
    const proxy = await startTcpProxy(t, postgres.port);
    const views = await openViews(postgres.url.replace(String(postgres.port), String(proxy.port)));
    const [pooled = views[0]] = await openViews(bouncer.url);
    if (pooled === undefined) throw new Error('a view was expected');
    const all = [...views.slice(1), pooled];
    let seed = 7;
    const random = (most: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % most;
    proxy.cutAfter = () => 400 + random(100_000);
    let done = 0;
    const rounds = 30;
    const hits = await load(all, rounds, () => {
      done++;
      if (done % 12 === 0) terminate(postgres);
      if (done % 12 === 6) proxy.cut();
    });
    proxy.cutAfter = undefined;
    t.equal(hits.filter(({ allowed }) => allowed).length, 80, 'exactly the limit');
    for (const key of ['a', 'b', 'c', 'd', 'e']) t.equal(await pooled.total(key), PROCESSES * rounds);
    const { remaining } = await pooled.spend('budget', { amount: 0, limit: 1_000, windowMs: WINDOW_MS * 1_000 });
    t.equal(Math.round(remaining), 1_000 - PROCESSES * rounds);
    t.match(postgres.sql("select deadlocks from pg_stat_database where datname = 'collab'"), '0');
    await closeAll([...views, pooled]);
  });

  await t.test('without PostgreSQL calls reject in a bounded time, and it goes on with an empty memory', async (t) => {
    const [shared, ...others] = await openViews(postgres.url, 3_000);
    if (shared === undefined) throw new Error('a view was expected');
    await shared.beginLease('w');
    await shared.count('conn', 'w', 2);
    await shared.hit('ip', 1, WINDOW_MS);
    postgres.signal('SIGSTOP');
    const refusal = { code: 'storage_unavailable', message: /database cannot be reached.*not confirmed/ };
    await t.rejects(shared.hit('ip', 1, WINDOW_MS), refusal, 'a server that does not answer');
    await t.rejects(shared.total('conn'), refusal, 'at once from then on');
    postgres.signal('SIGCONT');
    await postgres.kill();
    await t.rejects(shared.put({ key: 'k', name: 'n', owner: 'w', text: '' }), refusal);
    await postgres.restart();
    const answers = async (): Promise<boolean> => {
      try {
        return (await shared.total('conn')) === 0;
      } catch {
        return false;
      }
    };
    await until(answers);
    t.equal(await shared.renewLease('w'), false, 'the lease has ended');
    t.equal((await shared.hit('ip', 1, WINDOW_MS)).allowed, true);
    await closeAll([shared, ...others]);
  });

  await t.test('time goes on when the clock of the server is set back, for every process', async (t) => {
    const views = await openViews(postgres.url);
    const [shared, peer] = views;
    if (shared === undefined || peer === undefined) throw new Error('two views were expected');
    const putAt = async (view: Shared): Promise<number> => {
      await view.put({ key: 'clock', name: 'n', owner: '', text: '' });
      return (await view.get('clock', 'n'))?.putAt ?? 0;
    };
    await shared.beginLease('clock');
    const first = await putAt(shared);
    // What the process sees is the same as if the clock went back by ten minutes.
    postgres.sql('update collab.shared_clock set ahead = ahead - 600000');
    const second = await putAt(shared);
    const third = await putAt(peer);
    t.ok(first <= second && second <= third, `${first} ${second} ${third}`);
    t.ok(third - first < 60_000, 'and does not jump');
    t.equal(await peer.renewLease('clock'), true);
    await closeAll(views);
  });

  await t.test('texts come back byte for byte, and a wrong key is the failure of its call only', async (t) => {
    const views = await openViews(postgres.url);
    const [shared] = views;
    if (shared === undefined) throw new Error('a view was expected');
    const texts = ['\0', 'a\0b', '\\u0000', '\ud800', '\u0001x', "'; drop table x; --", '{"a":"\\n\\\\"}', '😀 ü', ''];
    const puts = texts.map((text, i) => shared.put({ key: 'texts', name: `${i}`, owner: '', text }));
    const outcomes = await Promise.allSettled([...puts, shared.hit('\ud800', 1, 1_000), shared.hit('good', 1, 1_000)]);
    t.strictSame(
      outcomes.map(({ status }) => status),
      [...texts.map(() => 'fulfilled'), 'rejected', 'fulfilled'],
    );
    t.strictSame(
      (await shared.list('texts')).map(({ text }) => text),
      texts,
    );
    t.equal((await shared.hit('good', 1, 1_000)).allowed, false, 'counted once');
    await closeAll(views);
  });

  await t.test('a window of many hits is exact, also when the limit is lowered', async (t) => {
    let now = 1_000_000;
    const shared = await openPostgresShared({
      option: 'store.url',
      url: postgres.url,
      patienceMs: PATIENCE_MS,
      now: () => now,
    });
    for (let i = 0; i < 400; i++) {
      void shared.hit('many', 1_000, 10_000);
      if (i % 10 === 9) await shared.hit('many', 1_000, 10_000);
      now++;
    }
    // 440 hits: 10 or 11 in each of 40 times, all of them in the 400 ms before.
    t.same(await shared.hit('many', 440, 10_000), { allowed: false, remaining: 0, resetMs: 10_000 + firstOf() - now });
    now = 1_000_000 + 10_000 + 199;
    const { allowed, remaining } = await shared.hit('many', 1_000, 10_000);
    t.same([allowed, remaining], [true, 1_000 - 220 - 1]);
    t.match(await shared.hit('many', 100, 10_000), { allowed: false, remaining: 0 });
    now += 20_000;
    t.same(await shared.hit('many', 2, 10_000), { allowed: true, remaining: 1, resetMs: 10_000 });
    t.equal(postgres.sql("select count(*) from collab.shared_windows where key = 'many'"), '1');
    await shared.close();

    function firstOf(): number {
      return 1_000_009;
    }
  });

  await t.test('five nodes that start at once on an empty database have one memory', async (t) => {
    const url = postgres.createDatabase('empty');
    const views = (await Promise.all(Array.from({ length: 5 }, () => openViews(url)))).flat();
    const hits = await Promise.all(views.map((view) => view.hit('k', 7, WINDOW_MS)));
    t.equal(hits.filter(({ allowed }) => allowed).length, 7);
    await closeAll(views);
  });
}
