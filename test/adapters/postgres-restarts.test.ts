import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { until } from '../helpers/cluster.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, type Postgres, startPostgres } from '../helpers/engines/postgres.ts';
import { eventOf, pause, StoreLoad } from '../helpers/engines/store-load.ts';

const open = (url: string, onLost?: (error: Error) => void): Promise<PostgresStore> =>
  openPostgresStore({ url, connections: 3, name: 'store', onLost });

t.test('a server that is killed', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t, { durable: true });
  const lost: Error[] = [];
  const stores = [await open(postgres.url, (error) => lost.push(error)), await open(postgres.url)];
  t.teardown(async () => {
    for (const store of stores) await store.close();
  });
  const [store] = stores;
  if (store === undefined) return;
  const load = new StoreLoad('killed', stores);
  await pause(300);
  await postgres.kill();
  await postgres.restart();
  // Each store refuses reads until it has found the server again.
  const before = new Set(load.confirmed);
  const since = (): string[] => [...load.confirmed].filter((id) => !before.has(id));
  await until(() => stores.every((_, s) => since().filter((id) => id.startsWith(`killed/${s}/`)).length > 50));
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
      await again.transact(async (tx) => tx.emit('killed', eventOf('promoted')));
      const last = await again.lastSeq('killed');
      await again.close();
      return last;
    })();
    t.equal(last, (load.received.get(store)?.length ?? 0) + 1);
    await until(async () => {
      await store.get('p', 'k').catch(() => {});
      return lost.length > 0;
    });
    t.match(lost, [{ code: 'storage_unavailable', message: /another one than before/ }]);
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store.get('p', 'k'),
      () => store.transact(async (tx) => tx.put('p', 'k', '1')),
      () => store.probe(),
    ];
    for (const call of calls) await t.rejects(Promise.resolve().then(call), { code: 'storage_unavailable' });
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
      reason: { code: 'storage_unavailable', message: /database cannot be reached/ },
    });
  const begun = performance.now();
  for (const call of calls) await t.rejects(call(), { code: 'storage_unavailable' });
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
