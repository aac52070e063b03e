import t from 'tap';
import { openPostgresShared } from '../../src/adapters/postgres/shared/shared.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPgbouncer, startPostgres } from '../helpers/engines/postgres.ts';

const skip = skipWithout(...POSTGRES, 'pgbouncer');

/** Tables of shared memory. */
const TABLES = ['windows', 'budgets', 'leases', 'counts', 'records', 'senders', 'clock'];

if (skip !== false) t.plan(0, skip);
else {
  const postgres = await startPostgres(t, { locale: 'en_US' });
  const pgbouncer = await startPgbouncer(t, postgres);
  const truncate = `truncate ${TABLES.map((name) => `collab.shared_${name}`).join()}`;

  await sharedConformance(t, async () => {
    const clock = new ManualClock(0);
    const open = (url: string) =>
      openPostgresShared({ option: 'store.url', url, patienceMs: 30_000, now: () => clock.monotonic() });
    const [shared, peer] = await Promise.all([open(pgbouncer.url), open(postgres.url)]);
    postgres.sql(truncate);
    t.teardown(() => Promise.all([shared.close(), peer.close()]));
    const stored = (): number =>
      ['leases', 'counts', 'records'].reduce(
        (sum, name) => sum + Number(postgres.sql(`select count(*) from collab.shared_${name}`)),
        0,
      );
    return { shared, peer, clock, stored };
  });
}
