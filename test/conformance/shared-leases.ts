import type { Test } from 'tap';
import { LEASE_MS, type NewSharedRecord, type SharedRecord } from '../../src/ports/shared.ts';
import type { OpenShared } from './shared.ts';

type SharedRecordParts = Pick<SharedRecord, 'key' | 'name' | 'owner' | 'text'>;

/** Opens a memory in which the owners w1, w2 and w11 have leases. */
async function withOwners(open: () => Promise<OpenShared>) {
  const opened = await open();
  for (const owner of ['w1', 'w2', 'w11']) await opened.shared.beginLease(owner);
  /** A record as it is read at the moment, if it was put at the moment. */
  const read = (record: NewSharedRecord): SharedRecord => {
    const { expiresInMs = null, ...others } = record;
    return { ...others, putAt: opened.clock.monotonic(), expiresInMs };
  };
  return { ...opened, read };
}

const record = (key: string, name: string, owner: string, text = owner): NewSharedRecord => ({
  key,
  name,
  owner,
  text,
});
/** What a record contains, without its times. */
export const partsOf = ({ key, name, owner, text }: SharedRecord): SharedRecordParts => ({ key, name, owner, text });
const namesOf = (records: readonly SharedRecord[]): string[] => records.map(({ name }) => name);

/** Asserts what ports/shared.ts says of owners, leases, counts and records. */
export async function leaseConformance(t: Test, open: () => Promise<OpenShared>): Promise<void> {
  await t.test('counts add up over owners', async (t) => {
    const { shared, peer } = await withOwners(open);
    t.equal(await shared.total('conn/a'), 0);
    t.equal(await shared.count('conn/a', 'w1', 1), 1);
    t.equal(await peer.count('conn/a', 'w2', 2), 3);
    t.equal(await shared.count('conn/ab', 'w2', 1), 1);
    t.equal(await shared.total('conn/a'), 3);
    t.equal(await shared.count('conn/a', 'w1', -1), 2);
    t.equal(await shared.count('conn/a', 'w1', -1), 2, 'a count does not go below 0');
  });

  await t.test(
    'records are visible to every process by key and name, and are replaced whatever their owner is',
    async (t) => {
      const { shared, peer, clock, read } = await withOwners(open);
      const two = record('room/a', 'two', 'w1', 'any text {"with":"spaces"} \u2713');
      const one = record('room/a', 'one', 'w2', '');
      const longer = record('room/ab', 'one', 'w2', 'of another key');
      await shared.put(two);
      await peer.put(one);
      await peer.put(longer);
      for (const view of [shared, peer]) t.strictSame(await view.list('room/a'), [read(one), read(two)]);
      t.strictSame(await shared.list('room'), []);
      for (const view of [shared, peer]) t.strictSame(await view.get('room/a', 'two'), read(two));
      for (const [key, name] of [
        ['room/a', 'three'],
        ['room/ab', 'two'],
        ['room', 'a two'],
      ] as const)
        t.equal(await shared.get(key, name), undefined);

      const before = read(one);
      clock.advance(7);
      const taken = record('room/a', 'two', '', 'without an owner');
      await peer.put(taken);
      t.strictSame(await shared.list('room/a'), [before, read(taken)], 'each says when it was put');
      await shared.delete('room/a', 'one');
      await shared.delete('room/a', 'unknown');
      t.equal(await peer.get('room/a', 'one'), undefined);
      t.strictSame(await shared.get('room/a', 'two'), read(taken));
      t.strictSame(await peer.list('room/a'), [read(taken)]);
      t.strictSame((await peer.list('room/ab')).map(partsOf), [longer]);
    },
  );

  await t.test('a record expires, whether or not its owner has a lease', async (t) => {
    const { shared, peer, clock } = await withOwners(open);
    await shared.put({ ...record('k', 'soon', 'w1'), expiresInMs: 1_000 });
    await shared.put({ ...record('k', 'later', ''), expiresInMs: 5_000 });
    await shared.put(record('k', 'never', ''));
    clock.advance(999);
    t.match(await peer.get('k', 'soon'), { expiresInMs: 1 });
    t.match(await peer.get('k', 'never'), { expiresInMs: null });
    clock.advance(1);
    t.equal(await peer.get('k', 'soon'), undefined);
    t.strictSame(namesOf(await peer.list('k')), ['later', 'never']);
    t.match(await peer.list('k'), [
      { name: 'later', expiresInMs: 4_000 },
      { name: 'never', expiresInMs: null },
    ]);
    await peer.put(record('k', 'later', 'w2'));
    clock.advance(4_000);
    t.strictSame(namesOf(await shared.list('k')), ['later', 'never'], 'a record that replaces one has its own time');
  });

  await t.test('what an owner has exists as long as its lease, and the lease as long as it is renewed', async (t) => {
    const { shared, peer, clock } = await withOwners(open);
    for (const owner of ['w1', 'w11', '']) await shared.put(record('k', `of-${owner}`, owner));
    for (const owner of ['w1', 'w11']) await shared.count('c', owner, 2);
    clock.advance(LEASE_MS - 1);
    t.equal(await peer.renewLease('w11'), true);
    t.equal((await peer.list('k')).length, 3);
    t.equal(await peer.total('c'), 4);
    clock.advance(1);
    for (const view of [shared, peer]) {
      t.strictSame(namesOf(await view.list('k')), ['of-', 'of-w11']);
      t.equal(await view.get('k', 'of-w1'), undefined);
      t.equal(await view.total('c'), 2);
    }
    t.equal(await shared.count('c', 'w11', 1), 3);
    t.equal(await shared.renewLease('w1'), false, 'a lease that has ended is not renewed');
    t.equal(await shared.renewLease('unknown'), false);
    t.equal(await peer.total('c'), 3);
    clock.advance(LEASE_MS - 2);
    t.equal(await peer.total('c'), 3, 'a renewed lease is as long as a new one');
    clock.advance(1);
    t.equal(await peer.total('c'), 0);
    t.strictSame(namesOf(await shared.list('k')), ['of-'], 'what is of nobody stays');
  });

  await t.test('what is written without a lease is not shown, and a new lease begins without entries', async (t) => {
    const { shared, peer, clock } = await withOwners(open);
    await shared.count('c', 'w1', 5);
    await shared.put(record('k', 'before', 'w1'));
    clock.advance(LEASE_MS);
    await peer.renewLease('w2');
    t.equal(await shared.count('c', 'w1', 1), 0);
    await shared.put(record('k', 'without', 'w1'));
    t.strictSame(await shared.list('k'), []);
    await shared.beginLease('w1');
    t.equal(await peer.total('c'), 0);
    t.strictSame(await peer.list('k'), []);
    t.equal(await shared.count('c', 'w1', 1), 1);
    await shared.put(record('k', 'after', 'w1'));
    t.strictSame(namesOf(await peer.list('k')), ['after']);
    await shared.beginLease('w1');
    t.equal(await peer.total('c'), 0, 'also in place of one that has not ended');
    t.strictSame(await peer.list('k'), []);
  });

  await t.test('at the end of a lease its counts are gone, and its records stay for a while', async (t) => {
    const { shared, peer, clock } = await withOwners(open);
    for (const owner of ['w1', 'w11', '']) await shared.put(record('k', `of-${owner}`, owner, 'x'));
    await shared.put({ ...record('k', 'soon', 'w1'), expiresInMs: 500 });
    for (const owner of ['w1', 'w11']) await shared.count('c', owner, 1);
    const [putAt] = [clock.monotonic(), clock.advance(100)];
    await peer.endLease('w1', 1_000);
    t.equal(await shared.total('c'), 1);
    t.equal(await shared.renewLease('w1'), false);
    t.equal((await shared.list('k')).length, 4);
    t.match(await shared.list('k'), [
      { name: 'of-', owner: '', expiresInMs: null },
      { name: 'of-w1', owner: '', text: 'x', putAt, expiresInMs: 1_000 },
      { name: 'of-w11', owner: 'w11', expiresInMs: null },
      { name: 'soon', owner: '', expiresInMs: 400 },
    ]);
    await peer.beginLease('w1');
    t.equal((await shared.list('k')).length, 4, 'they are nobody’s');
    clock.advance(1_000);
    t.strictSame(namesOf(await shared.list('k')), ['of-', 'of-w11']);
  });

  await t.test('the end of a lease that has ended before brings nothing back', async (t) => {
    const { shared, peer, clock } = await withOwners(open);
    await shared.put(record('k', 'n', 'w1'));
    clock.advance(LEASE_MS);
    await peer.endLease('w1', 1_000);
    await peer.endLease('unknown', 1_000);
    t.strictSame(await shared.list('k'), []);
    await shared.put(record('k', 'n', 'w1'));
    await peer.endLease('w1', 1_000);
    t.strictSame(await shared.list('k'), []);
  });

  await t.test('sweep deletes what is not shown, and nothing else', async (t) => {
    const { shared, peer, clock, stored } = await withOwners(open);
    for (const owner of ['w1', 'w2']) {
      await shared.put(record('k', `of-${owner}`, owner));
      await shared.count('c', owner, 1);
    }
    await shared.put({ ...record('k', 'expires', 'w2'), expiresInMs: 10 });
    await shared.put({ ...record('k', 'stays', ''), expiresInMs: LEASE_MS + 10 });
    clock.advance(LEASE_MS - 1);
    await shared.renewLease('w2');
    clock.advance(1);
    const shown = await shared.list('k');
    await peer.sweep(0);
    t.strictSame(namesOf(shown), ['of-w2', 'stays']);
    t.strictSame(await shared.list('k'), shown);
    t.equal(await shared.total('c'), 1);
    t.equal(await shared.renewLease('w2'), true);
    if (stored !== undefined) t.equal(stored(), 4, 'a lease, a count and two records');
  });
}
