import t from 'tap';
import { openPostgresBus } from '../../src/adapters/postgres/bus/bus.ts';
import { busConformance } from '../conformance/bus.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

const skip = skipWithout(...POSTGRES);

if (skip !== false) t.plan(0, skip);
else {
  const postgres = await startPostgres(t);
  await busConformance(t, async (t) => {
    const open = () => openPostgresBus({ option: 'store.url', url: postgres.url, bounds: { deafMs: 30_000 } });
    const [one, two, three] = await Promise.all([open(), open(), open()]);
    t.teardown(() => Promise.all([one.close(), two.close(), three.close()]));
    return [one, two, three];
  });
}
