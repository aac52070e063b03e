import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { CollabError } from '../../src/model/errors.ts';
import { until } from '../helpers/cluster.ts';
import { type Cut, startCuttingProxy } from '../helpers/engines/cutting-proxy.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';

const open = (url: string, onLost?: (error: Error) => void): Promise<PostgresStore> =>
  openPostgresStore({ url, connections: 3, name: 'store', onLost });
const event = (id: string) => (seq: number) => JSON.stringify({ seq, id });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Transactions on some stores, and what their followers receive. */
class Load {
  readonly confirmed = new Set<string>();
  readonly refused = new Map<string, string>();
  readonly received = new Map<PostgresStore, { seq: number; id: string }[]>();
  readonly #name: string;
  readonly #writers: Promise<void>[];
  readonly #stop = new AbortController();

  constructor(name: string, stores: readonly PostgresStore[]) {
    this.#name = name;
    for (const store of stores) {
      const received: { seq: number; id: string }[] = [];
      this.received.set(store, received);
      store.follow((stream, event) => {
        if (stream === name && event !== null) received.push(JSON.parse(event.text) as { seq: number; id: string });
      });
    }
    this.#writers = stores.flatMap((store, s) => [0, 1, 2, 3].map((w) => this.#write(store, `${name}/${s}/${w}`)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#writers);
  }

  async #write(store: PostgresStore, prefix: string): Promise<void> {
    for (let i = 0; !this.#stop.signal.aborted; i++) {
      const id = `${prefix}/${i}`;
      try {
        await store.transact(async (tx) => {
          await tx.get(`${this.#name}/all`, id);
          tx.update(`${this.#name}/stats`, 'count', (current) => String(Number(current ?? 0) + 1));
          tx.put(`${this.#name}/all`, id, '1');
          tx.emit(this.#name, event(id));
        });
        this.confirmed.add(id);
      } catch (error) {
        if (!(error instanceof CollabError)) throw error;
        this.refused.set(id, `${error.code}: ${error.message}`);
        await pause(20);
      }
    }
  }

  /** Asserts that each confirmed write is there once, with its event, and that all followers received all of them. */
  async verify(t: Test, store: PostgresStore): Promise<void> {
    const name = this.#name;
    const keys = (await store.range(`${name}/all`)).map(({ key }) => key);
    const events = (await store.events(name, 0, 1_000_000)).map(
      ({ text }) => JSON.parse(text) as { seq: number; id: string },
    );
    const there = new Set(keys);
    t.ok(this.confirmed.size > 20, `${this.confirmed.size} were confirmed, ${this.refused.size} refused`);
    t.strictSame(
      [...this.confirmed].filter((id) => !there.has(id)),
      [],
      'what was confirmed is there',
    );
    t.strictSame(events.map(({ id }) => id).sort(), [...keys].sort(), 'each with one event');
    t.equal(await store.get(`${name}/stats`, 'count'), String(keys.length), 'and counted once');
    t.strictSame(
      events.map(({ seq }) => seq),
      keys.map((_, i) => i + 1),
      'positions have no gap',
    );
    for (const [id, refusal] of this.refused) {
      t.match(refusal, /^storage_failed: .*(nothing was written|nothing was read|not confirmed)/);
      if (refusal.includes('nothing was') && there.has(id)) t.fail(`${id} was refused, but is there`);
    }
    for (const [follower, received] of this.received) {
      follower.poll();
      await until(() => {
        follower.poll();
        return received.length >= events.length;
      });
      t.strictSame(
        received.map(({ seq }) => seq),
        events.map(({ seq }) => seq),
        'followers get each event once, in order',
      );
    }
  }
}

async function terminated(t: Test, postgres: Postgres): Promise<void> {
  const admin = await openPool({ option: 'store.url', url: postgres.url, connections: 1, name: 'admin' });
  const first = await open(postgres.url);
  const stores = [first, await open(postgres.url)];
  t.teardown(async () => {
    for (const store of stores) await store.close();
    admin.close();
  });
  const load = new Load('terminated', stores);
  for (let i = 0; i < 8; i++) {
    await pause(60 + Math.random() * 60);
    await admin.run(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'store'`);
  }
  await load.stop();
  await load.verify(t, first);
}

async function cut(t: Test, postgres: Postgres): Promise<void> {
  const proxy = await startCuttingProxy(t, postgres.port);
  const url = postgres.url.replace(`:${postgres.port}/`, `:${proxy.port}/`);
  const first = await open(url);
  const stores = [first, await open(url)];
  t.teardown(async () => {
    for (const store of stores) await store.close();
  });
  const load = new Load('cut', stores);
  let commits = 0;
  const cuts: Record<Cut, number> = { never: 0, before: 0, after: 0 };
  proxy.onText('commit\0', () => {
    const cut = (['never', 'before', 'never', 'after'] as const)[commits++ % 4] ?? 'never';
    cuts[cut]++;
    return cut;
  });
  await until(() => cuts.before > 5 && cuts.after > 5);
  proxy.onText('', () => 'never');
  for (let round = 0; round < 6; round++) {
    proxy.cutWithin(4_000);
    await pause(50);
  }
  proxy.cutWithin(Infinity);
  proxy.accept(false);
  proxy.accept(true);
  await pause(50);
  await load.stop();
  await load.verify(t, first);
}

async function strangers(t: Test, postgres: Postgres): Promise<void> {
  const admin = await openPool({ option: 'store.url', url: postgres.url, connections: 2, name: 'admin' });
  const [store, peer] = [await open(postgres.url), await open(postgres.url)];
  t.teardown(async () => {
    await store.close();
    await peer.close();
    admin.close();
  });
  const received: string[] = [];
  peer.follow((stream, event) => received.push(`${stream} ${event?.seq}`));
  await admin.use(async (stranger) => {
    await stranger.run('begin; create table stranger(n int)');
    // Transactions that commit in another order than they began: a's is older than b's, and commits later.
    await admin.use(async (slow) => {
      const begun = await slow.run(`begin; insert into collab.streams (stream, last_seq, commit)
        values ('a', 1, pg_current_xact_id()); insert into collab.events (stream, seq, text) values ('a', 1, '{}')`);
      t.equal(begun.length, 3);
      await store.transact(async (tx) => tx.emit('b', event('b')));
      peer.poll();
      await until(() => received.length === 1);
      await slow.run('commit');
    });
    peer.poll();
    await until(() => received.length === 2);
    for (let i = 1; i <= 5; i++) {
      await store.transact(async (tx) => tx.emit('b', event('b')));
      peer.poll();
      await until(() => received.length === 2 + i);
    }
    await stranger.run('rollback');
  });
  t.strictSame(received, ['b 1', 'a 1', 'b 2', 'b 3', 'b 4', 'b 5', 'b 6']);
}

async function stopped(t: Test, postgres: Postgres): Promise<void> {
  const admin = await openPool({ option: 'store.url', url: postgres.url, connections: 1, name: 'admin' });
  const store = await open(postgres.url);
  t.teardown(async () => {
    await store.close();
    admin.close();
  });
  await store.transact(async (tx) => tx.put('stopped', 'k', '0'));
  // As a process does that is stopped between its two round trips, and goes on much later.
  await t.rejects(
    admin.use(async (other) => {
      await other.run(`begin; set local idle_in_transaction_session_timeout = '100ms';
        select from collab.partitions where partition = 'stopped' for update`);
      await store.transact(async (tx) => tx.put('stopped', 'k', '1'));
      await other.run('commit');
    }),
    { name: /ConnectionLost|error/ },
  );
  t.equal(await store.get('stopped', 'k'), '1');
}

t.test('faults of connections', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  for (const [name, run] of Object.entries({
    'connections that are terminated all the time lose nothing that was confirmed, and repeat nothing': terminated,
    'connections that are cut at random bytes and inside COMMIT lose nothing, and repeat nothing': cut,
    'a transaction that a stranger holds open hides no event': strangers,
    'a process that is stopped while it holds locks does not keep the others waiting': stopped,
  }))
    await t.test(name, (t) => run(t, postgres));
});

t.test('a server that is killed', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t, { durable: true });
  const lost: Error[] = [];
  const stores = [await open(postgres.url, (error) => lost.push(error)), await open(postgres.url)];
  t.teardown(async () => {
    for (const store of stores) await store.close();
  });
  const [store] = stores;
  if (store === undefined) return;
  const load = new Load('killed', stores);
  await pause(300);
  await postgres.kill();
  await postgres.restart();
  await until(() => load.confirmed.size > 100);
  await load.stop();
  await load.verify(t, store);
  t.strictSame(lost, [], 'a restart is no other database');

  await t.test('while the server is away, reads and writes are refused in time, and it is found again', (t) =>
    away(t, postgres, store),
  );
  await t.test('a standby is refused, and begins a new epoch once it is promoted', async (t) => {
    await postgres.kill();
    writeFileSync(join(postgres.dir, 'standby.signal'), '');
    await postgres.restart();
    await t.rejects(open(postgres.url), { name: 'EngineError', retry: false, message: /read-only standby/ });
    const last = await (async () => {
      postgres.sql('select pg_promote()');
      await until(() => postgres.sql('select pg_is_in_recovery()') === 'f');
      const again = await open(postgres.url);
      t.not(again.epoch, store.epoch);
      await again.transact(async (tx) => tx.emit('killed', event('promoted')));
      const last = await again.lastSeq('killed');
      await again.close();
      return last;
    })();
    t.equal(last, (load.received.get(store)?.length ?? 0) + 1);
    await until(async () => {
      await store.get('p', 'k').catch(() => {});
      return lost.length > 0;
    });
    t.match(lost, [{ code: 'storage_failed', message: /another one than before/ }]);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store.get('p', 'k'),
      () => store.transact(async (tx) => tx.put('p', 'k', '1')),
      () => store.probe(),
    ];
    for (const call of calls) await t.rejects(Promise.resolve().then(call), { code: 'storage_failed' });
  });
});

async function away(t: Test, postgres: Postgres, store: PostgresStore): Promise<void> {
  await store.transact(async (tx) => tx.put('p', 'k', '1'));
  await postgres.kill();
  const calls: readonly (() => Promise<unknown>)[] = [
    () => store.get('p', 'k'),
    () => store.cached('v', ['p'], () => Promise.resolve(1)),
    () => store.transact(async (tx) => tx.put('p', 'k', '2')),
    () => store.probe(),
    () => store.trimEvents('s', 1),
  ];
  for (const outcome of await Promise.allSettled(calls.map((call) => call())))
    t.match(outcome, {
      status: 'rejected',
      reason: { code: 'storage_failed', message: /database cannot be reached/ },
    });
  const begun = performance.now();
  for (const call of calls) await t.rejects(call(), { code: 'storage_failed' });
  t.ok(performance.now() - begun < 5_000, 'at once, when it has been away for a while');
  await postgres.restart();
  await until(() =>
    store.get('p', 'k').then(
      (value) => value === '1',
      () => false,
    ),
  );
  await store.transact(async (tx) => tx.put('p', 'k', '3'));
  t.equal(await store.get('p', 'k'), '3');
}
