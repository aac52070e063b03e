import t, { type Test } from 'tap';
import { openPool, type Pool } from '../../src/adapters/postgres/pool.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';

const open = (url: string): Promise<PostgresStore> => openPostgresStore({ url, connections: 2, name: 'store' });

async function startsTogether(t: Test, postgres: Postgres): Promise<void> {
  const stores = await Promise.all(Array.from({ length: 5 }, () => open(postgres.url)));
  t.equal(new Set(stores.map(({ epoch }) => epoch)).size, 1);
  for (const store of stores) await store.transact(async (tx) => tx.emit('s', (seq) => String(seq)));
  t.equal(await stores[0]?.lastSeq('s'), 5);
  for (const store of stores) await store.close();
  const again = await open(postgres.url);
  t.equal(again.epoch, stores[0]?.epoch, 'the epoch stays');
  await again.close();
}

async function refusesOthers(t: Test, postgres: Postgres): Promise<void> {
  const refusal = { name: 'EngineError', option: 'store.url', retry: false };
  postgres.sql('create role nobody login');
  const asNobody = (url: string): string => url.replace('postgres@', 'nobody@');
  const message = /does not let nobody do this \(permission denied/;
  await t.rejects(open(asNobody(postgres.createDatabase('empty'))), { ...refusal, message });
  await t.rejects(open(asNobody(postgres.url)), { ...refusal, message }, 'a schema of somebody else');
  postgres.sql(`create database ascii encoding 'SQL_ASCII' template template0`, 'postgres');
  await t.rejects(open(postgres.url.replace('/collab', '/ascii')), { ...refusal, message: /in SQL_ASCII: .* UTF8/ });
  const newer = postgres.createDatabase('newer');
  await (await open(newer)).close();
  postgres.sql(`update collab.meta set value = '99' where name in ('schema', 'compatible')`, 'newer');
  await t.rejects(open(newer), { ...refusal, message: /has schema 99 of a newer version of Collab.*upgrade/ });
  postgres.sql(`update collab.meta set value = '1' where name = 'compatible'`, 'newer');
  await t.resolves(
    open(newer).then((store) => store.close()),
    'a newer schema that this program can use',
  );
  t.equal(postgres.sql(`select value from collab.meta where name = 'schema'`, 'newer'), '99');
}

async function stopsOthers(t: Test, postgres: Postgres): Promise<void> {
  const url = postgres.createDatabase('raised');
  const running = await open(url);
  await running.transact(async (tx) => tx.put('p', 'k', 'before'));
  // As an older program that this one can no longer run beside.
  postgres.sql(`update collab.meta set value = '0' where name = 'compatible'`, 'raised');
  const newer = await open(url);
  t.not(newer.epoch, running.epoch);
  await t.rejects(
    running.transact(async (tx) => tx.put('p', 'k', 'after')),
    { code: 'storage_unavailable' },
  );
  t.equal(await newer.get('p', 'k'), 'before');
  await Promise.all([running.close(), newer.close()]);
}

async function showsRecords(t: Test, postgres: Postgres): Promise<void> {
  const store = await open(postgres.url);
  t.teardown(() => store.close());
  const text = 'a \u0000 NUL \\u0000';
  await store.transact(async (tx) => {
    tx.put('e/env1/t/thr1', 'thread', JSON.stringify({ id: 'thr1', roomId: 'r' }));
    tx.put('e/env1/t/thr1', 'c/1', JSON.stringify({ id: 'com1', body: `it’s \\ ${text}` }));
    tx.put('e/env1/t/thr1', 'stats', '{}');
  });
  t.equal(postgres.sql(`select environment, thread, record->>'roomId' from collab.threads`), 'env1|thr1|r');
  t.equal(postgres.sql(`select environment, thread, record->>'id' from collab.comments`), 'env1|thr1|com1');
  t.equal(postgres.sql(`select record->>'body' from collab.comments`), 'it’s \\ a \ufffd NUL \\u0000');
  t.match(JSON.parse((await store.get('e/env1/t/thr1', 'c/1')) ?? ''), { body: `it’s \\ ${text}` });
}

/** Lets all events there are be from long ago, in a partition of their own. */
async function age(admin: Pool, name: string, from: string, to: string): Promise<void> {
  await admin.run(`create table collab.${name} partition of collab.events for values from ('${from}') to ('${to}');
    update collab.events set committed_at = '${from}'`);
}

async function maintains(t: Test, postgres: Postgres): Promise<void> {
  const url = postgres.createDatabase('maintained');
  const store = await open(url);
  const admin = await openPool({ option: 'store.url', url, connections: 2, name: 'admin' });
  t.teardown(async () => {
    await store.close();
    admin.close();
  });
  const partitions = async (): Promise<string> =>
    (await admin.run(`select inhrelid::regclass::text from pg_inherits where inhparent = 'collab.events'::regclass`))
      .flat(2)
      .join();
  const emit = (stream: string, n: number): Promise<void> =>
    store.transact(async (tx) => {
      for (let i = 0; i < n; i++) tx.emit(stream, (seq) => `{"seq":${seq}}`);
    });
  t.match(await partitions(), /events_\d{8}_\d{8}.*events_\d{8}_\d{8}.*events_\d{8}_\d{8}/, 'for the next days');
  for (const stream of ['kept', 'trimmed', 'ended']) await emit(stream, 10);
  await store.trimEvents('trimmed', 10);
  await age(admin, 'events_20200101_20200102', '2020-01-01 00:00+00', '2020-01-02 00:00+00');
  await store.maintain();
  t.match(await partitions(), 'events_20200101_20200102', 'a stream needs its events');
  await store.transact(async (tx) => tx.endStream('ended'));
  await store.trimEvents('kept', 10);
  await store.maintain();
  t.notMatch(await partitions(), 'events_20200101_20200102');
  t.strictSame(await admin.run('select stream, seq from collab.events order by stream'), [
    [
      ['kept', '10'],
      ['trimmed', '10'],
    ],
  ]);
  await emit('kept', 1);
  t.strictSame(
    (await store.events('kept', 0, 100)).map(({ seq }) => seq),
    [10, 11],
    'positions continue',
  );

  await store.transact(async (tx) => tx.put('gone', 'k', '1'));
  await store.transact(async (tx) => tx.put('there', 'k', '1'));
  await store.transact(async (tx) => tx.delete('gone', 'k'));
  await admin.run(`update collab.commits set id = '00000000-0000-7000-b000-000000000000', committed_at = '2020-01-01'
    where id = (select min(id::text)::uuid from collab.commits)`);
  await admin.use(async (other) => {
    // Another process has the lock: nothing is done, and nobody waits.
    await other.run(`begin; select pg_advisory_xact_lock(${0x43_6f_6c_6c_61_63})`);
    await store.maintain();
    t.strictSame(await admin.run(`select partition from collab.partitions order by 1`), [[['gone'], ['there']]]);
    await other.run('rollback');
  });
  await store.maintain();
  t.strictSame(await admin.run(`select partition from collab.partitions`), [[['there']]]);
  t.strictSame(await admin.run(`select count(*) from collab.commits where committed_at < '2021-01-01'`), [[['0']]]);
  await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      if (i % 4 === 0) await store.maintain();
      else await store.transact(async (tx) => tx.put(`short/${i % 4}`, 'k', '1'));
      await store.transact(async (tx) => tx.delete(`short/${i % 4}`, 'k'));
    }),
  );
  t.strictSame(await store.partitions('short'), []);
}

t.test('the schema', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  for (const [name, run] of Object.entries({
    'five processes that open an empty database at once share one schema and one epoch': startsTogether,
    'a role without rights, a database in another encoding and a newer schema are refused in one line': refusesOthers,
    'a schema that older programs cannot use stops those that run': stopsOthers,
    'views show threads and comments as JSON': showsRecords,
    'maintenance drops what nobody can read any more, and keeps the last event of each stream': maintains,
  }))
    await t.test(name, (t) => run(t, postgres));
});
