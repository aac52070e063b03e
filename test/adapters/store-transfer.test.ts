import t, { type Test } from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { openLmdbTransfer } from '../../src/adapters/lmdb/transfer/transfer.ts';
import { Connection } from '../../src/adapters/postgres/connection.ts';
import { openPostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { parseTarget } from '../../src/adapters/postgres/target.ts';
import { MOVED_STATE } from '../../src/adapters/postgres/transfer/refuse-writes.ts';
import { openPostgresTransfer } from '../../src/adapters/postgres/transfer/transfer.ts';
import { storeTransferConformance } from '../conformance/store-transfer.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { until } from '../helpers/cluster.ts';

t.test('a folder', async (t: Test) => {
  await storeTransferConformance(t, async (t) => {
    const path = tempFolder(t);
    return {
      open: () => openLmdbStore({ path, minFreeBytes: 0 }),
      transfer: () => openLmdbTransfer({ path, minFreeBytes: 0 }),
    };
  });
});

t.test('PostgreSQL', { skip: skipWithout(...POSTGRES) }, async (t: Test) => {
  const postgres = await startPostgres(t, { locale: 'en_US' });
  let databases = 0;
  await storeTransferConformance(t, async () => {
    const url = postgres.createDatabase(`db${databases++}`);
    return {
      open: () => openPostgresStore({ url, connections: 4, name: 'test' }),
      transfer: () => openPostgresTransfer({ url }),
    };
  });
});

t.test(
  'a move is taken back without a deadlock with a commit that has begun',
  { skip: skipWithout(...POSTGRES) },
  async (t) => {
    const postgres = await startPostgres(t);
    const source = await openPostgresTransfer({ url: postgres.url });
    t.teardown(() => source.close());
    await source.setState({ kind: 'moved', other: 'elsewhere', epoch: 'abc' });
    const commit = await Connection.open(parseTarget('store.url', postgres.url), 'test');
    t.teardown(() => commit.close());
    await commit.run(`begin; select value from collab.meta where name = 'epoch'`);
    const resumed = source.resume(true);
    await until(() => postgres.sql(`select count(*) from pg_stat_activity where wait_event_type = 'Lock'`) === '1');
    await t.rejects(commit.run('insert into collab.commits (id) values (gen_random_uuid())'), { code: MOVED_STATE });
    await commit.run('rollback');
    await resumed;
    t.equal(await source.state(), undefined);
  },
);
