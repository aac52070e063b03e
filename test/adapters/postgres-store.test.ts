import t, { type Test } from 'tap';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { postgresConformance } from '../helpers/engines/postgres-conformance.ts';

t.test('a database with the collation C', { skip: skipWithout(...POSTGRES) }, async (t: Test) => {
  const postgres = await startPostgres(t);
  await postgresConformance(t, postgres.url);
});
