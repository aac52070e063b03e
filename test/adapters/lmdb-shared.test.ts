import t from 'tap';
import { openLmdbShared } from '../../src/adapters/lmdb/shared.ts';
import { sharedConformance } from '../conformance/shared.ts';
import { endHolderOf } from '../helpers/shared-holder.ts';

let folder = 0;

await sharedConformance(t, async () => {
  const path = `${t.testdir()}/${folder++}`;
  const [shared, peer] = [openLmdbShared({ path }), openLmdbShared({ path })];
  t.teardown(() => Promise.all([shared.close(), peer.close()]));
  return { shared, peer, endProcess: (t) => endHolderOf(t, path) };
});
