import t from 'tap';
import { openLmdbShared } from '../../src/adapters/lmdb/shared.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { endHolderOf, storedIn } from '../helpers/shared-holder.ts';

let folder = 0;

await sharedConformance(t, async () => {
  const clock = new ManualClock(0);
  const path = `${t.testdir()}/${folder++}`;
  const [shared, peer] = [openLmdbShared({ path, clock }), openLmdbShared({ path, clock })];
  t.teardown(() => Promise.all([shared.close(), peer.close()]));
  return { shared, peer, clock, stored: storedIn(t, path), endProcess: (t) => endHolderOf(t, path) };
});
