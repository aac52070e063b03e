import t, { type Test } from 'tap';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { until } from '../helpers/cluster.ts';
import { type Cut, startCuttingProxy } from '../helpers/engines/cutting-proxy.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';
import { eventOf, pause, StoreLoad } from '../helpers/engines/store-load.ts';

const open = (url: string): Promise<PostgresStore> => openPostgresStore({ url, connections: 3, name: 'store' });

async function terminated(t: Test, postgres: Postgres): Promise<void> {
  const admin = await openPool({ option: 'store.url', url: postgres.url, connections: 1, name: 'admin' });
  const first = await open(postgres.url);
  const stores = [first, await open(postgres.url)];
  t.teardown(async () => {
    for (const store of stores) await store.close();
    admin.close();
  });
  const load = new StoreLoad('terminated', stores);
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
  const load = new StoreLoad('cut', stores);
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
      await store.transact(async (tx) => tx.emit('b', eventOf('b')));
      peer.poll();
      await until(() => received.length === 1);
      await slow.run('commit');
    });
    peer.poll();
    await until(() => received.length === 2);
    for (let i = 1; i <= 5; i++) {
      await store.transact(async (tx) => tx.emit('b', eventOf('b')));
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

async function unreplicated(t: Test, postgres: Postgres): Promise<void> {
  const setStandby = (name: string): void => {
    postgres.sql(`alter system set synchronous_standby_names = '${name}'`);
    postgres.sql('select pg_reload_conf()');
  };
  const store = await open(postgres.url);
  t.teardown(() => store.close());
  setStandby('nowhere');
  t.teardown(() => setStandby(''));
  await until(() => postgres.sql('show synchronous_standby_names') === 'nowhere');
  const write = store.transact(async (tx) => tx.put('unreplicated', 'k', '1'));
  const refused = t.rejects(write, { code: 'storage_unavailable', message: /not confirmed/ });
  const cancel = `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;
  await until(() => postgres.sql(cancel) === 't');
  await refused;
}

t.test('faults of connections', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  for (const [name, run] of Object.entries({
    'connections that are terminated all the time lose nothing that was confirmed, and repeat nothing': terminated,
    'connections that are cut at random bytes and inside COMMIT lose nothing, and repeat nothing': cut,
    'a transaction that a stranger holds open hides no event': strangers,
    'a commit whose wait for a standby is cancelled is not confirmed': unreplicated,
    'a process that is stopped while it holds locks does not keep the others waiting': stopped,
  }))
    await t.test(name, (t) => run(t, postgres));
});
