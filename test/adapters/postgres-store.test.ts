import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { type Disk, storeConformance } from '../conformance/store.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPgbouncer, startPostgres } from '../helpers/engines/postgres.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';

/** Makes each commit fail as the server does when its disk does. */
const failing = (state: string): string => `
  create function collab.fail() returns trigger language plpgsql as
    $$ begin raise exception 'the disk' using errcode = '${state}'; end $$;
  create trigger fail before insert on collab.commits for each row execute function collab.fail()`;

const EMPTY = `
  truncate collab.records, collab.partitions, collab.streams, collab.events, collab.commits;
  drop trigger if exists fail on collab.commits;
  drop function if exists collab.fail`;

/** Runs the suite on the database at a URL. */
async function conformance(t: Test, url: string): Promise<void> {
  const admin = await openPool({ option: 'store.url', url, connections: 1, name: 'admin' });
  t.teardown(() => admin.close());
  const open = (): Promise<PostgresStore> => openPostgresStore({ url, connections: 4, name: 'test' });
  await (await open()).close();
  await storeConformance(t, async (_, disk: Disk) => {
    await admin.run(EMPTY);
    const [store, peer] = await Promise.all([open(), open()]);
    if (disk !== 'works') await admin.run(failing(disk === 'full' ? '53100' : '58030'));
    const outside = {
      commit: (...record: readonly string[]) =>
        execFileSync(process.execPath, [...fixtureArgs('postgres-commit'), url, ...record]),
    };
    return {
      store,
      peer,
      outside,
      close: async () => {
        await store.close();
        await peer.close();
      },
    };
  });
}

t.test('a database with the collation C', { skip: skipWithout(...POSTGRES) }, async (t: Test) => {
  const postgres = await startPostgres(t);
  await conformance(t, postgres.url);
});

t.test(
  'a database with the collation en_US, behind PgBouncer in transaction mode',
  { skip: skipWithout(...POSTGRES, 'pgbouncer') },
  async (t: Test) => {
    const postgres = await startPostgres(t, { locale: 'en_US' });
    const { url } = await startPgbouncer(t, postgres);
    await conformance(t, url);
  },
);
