import t, { type Test } from 'tap';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPgbouncer, startPostgres } from '../helpers/engines/postgres.ts';
import { postgresConformance } from '../helpers/engines/postgres-conformance.ts';

t.test(
  'a database with the collation en_US, behind PgBouncer in transaction mode',
  { skip: skipWithout(...POSTGRES, 'pgbouncer') },
  async (t: Test) => {
    const postgres = await startPostgres(t, { locale: 'en_US' });
    const { url } = await startPgbouncer(t, postgres);
    await postgresConformance(t, url);
  },
);
