import t, { type Test } from 'tap';
import { FencedStore } from '../../src/domain/leases/fenced-store.ts';
import {
  type Lease,
  type LeaseLostError,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
  wantLease,
} from '../../src/domain/leases/leases.ts';
import type { Store } from '../../src/ports/store.ts';
import { MemoryDatabase } from '../doubles/memory-database.ts';
import { MemoryStore } from '../doubles/memory-store.ts';

const ONE = { node: 'one', worker: 'background-1' };
const TWO = { node: 'two', worker: 'background-7' };

/** Two processes over one store. */
function stores(t: Test): { store: Store; peer: Store } {
  const database = new MemoryDatabase();
  const [store, peer] = [new MemoryStore(database), new MemoryStore(database)];
  t.teardown(() => Promise.all([store.close(), peer.close()]));
  return { store, peer };
}

async function take(store: Store, holder = ONE): Promise<Lease> {
  const lease = await takeLease(store, 'work', holder, await readLease(store, 'work'));
  if (lease === null) throw new Error('the lease was not taken');
  return lease;
}

t.test('each holder of a lease has a greater fencing number, also after it was given up', async (t) => {
  const { store, peer } = stores(t);
  t.strictSame(await readLease(store, 'work'), { holder: null, fence: 0, renewals: 0, isWanted: false });
  const lease = await take(store);
  t.strictSame(await readLease(peer, 'work'), { holder: ONE, fence: 1, renewals: 0, isWanted: false });
  await releaseLease(store, lease);
  t.match(await readLease(peer, 'work'), { holder: null, fence: 1 });
  t.equal((await take(peer, TWO)).fence, 2);
  await releaseLease(store, lease);
  t.match(await readLease(peer, 'work'), { holder: TWO }, 'what was lost cannot be given up');
  t.match(await readLease(peer, 'other'), { holder: null, fence: 0 }, 'leases are separate');
});

t.test('of two that saw the same lease one takes it, and none does when it was renewed meanwhile', async (t) => {
  const { store, peer } = stores(t);
  const seen = await readLease(store, 'work');
  const taken = await Promise.all([takeLease(store, 'work', ONE, seen), takeLease(peer, 'work', TWO, seen)]);
  t.equal(taken.filter((lease) => lease !== null).length, 1);
  const holder = taken.find((lease) => lease !== null) as Lease;
  const before = await readLease(store, 'work');
  await renewLease(store, holder);
  t.equal(await takeLease(peer, 'work', TWO, before), null);
});

t.test('a lease is wanted until the next holder has taken it', async (t) => {
  const { store, peer } = stores(t);
  await take(store);
  await wantLease(peer, 'work');
  t.equal((await readLease(store, 'work')).isWanted, true);
  await take(peer, TWO);
  t.equal((await readLease(store, 'work')).isWanted, false);
});

t.test('a stale holder is refused each commit, renewal and trim, and nothing of it is stored', async (t) => {
  const { store, peer } = stores(t);
  const lease = await take(store);
  const lost: LeaseLostError[] = [];
  const fenced = new FencedStore(store, lease, (error) => lost.push(error));
  const write = (value: string): Promise<string> =>
    fenced.transact(async (tx) => {
      tx.put('p', 'k', value);
      tx.emit('stream', (seq) => `{"seq":${seq}}`);
      return value;
    });
  t.equal(await write('mine'), 'mine');
  await renewLease(store, lease);
  await write('still mine');
  await fenced.trimEvents('stream', 1);
  await take(peer, TWO);
  const refusal = {
    name: 'LeaseLostError',
    message:
      'the lease "work" was lost: it was taken with the fencing number 1, and background-7 of node two holds it with 2 now',
  };
  await t.rejects(write('late'), refusal);
  await t.rejects(renewLease(store, lease), refusal);
  await t.rejects(fenced.trimEvents('stream', 2), refusal);
  t.equal(lost.length, 2, 'each refusal of the fenced store is reported');
  t.equal(await peer.get('p', 'k'), 'still mine');
  t.equal(await peer.lastSeq('stream'), 2);
  t.equal(await peer.oldestSeq('stream'), await store.oldestSeq('stream'));
});

t.test('a transaction during which the lease is taken runs again, and is refused', async (t) => {
  const { store, peer } = stores(t);
  const fenced = new FencedStore(store, await take(store), () => {});
  let runs = 0;
  await t.rejects(
    fenced.transact(async (tx) => {
      runs++;
      tx.put('p', 'k', 'late');
      await take(peer, TWO);
    }),
    { name: 'LeaseLostError' },
  );
  t.equal(runs, 1, 'the second time it is not begun');
  t.equal(await peer.get('p', 'k'), undefined);
});

t.test('a renewal does not make the transactions under the lease run again', async (t) => {
  const { store, peer } = stores(t);
  const lease = await take(store);
  let runs = 0;
  await new FencedStore(store, lease, () => {}).transact(async (tx) => {
    runs++;
    tx.put('p', 'k', 'x');
    await renewLease(peer, lease);
    await wantLease(peer, 'work');
  });
  t.equal(runs, 1);
});
