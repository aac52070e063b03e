import t, { type Test } from 'tap';
import { Connection } from '../../src/adapters/postgres/connection.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import type { Transaction } from '../../src/ports/store.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

/** The round trips that `work` takes. */
async function tripsOf(t: Test, work: () => Promise<unknown>): Promise<number> {
  const calls = t.capture(Connection.prototype, 'run', Connection.prototype.run);
  await work();
  calls.restore();
  return calls().length;
}

type Case = (t: Test, store: PostgresStore, peer: PostgresStore) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  'the reads of one event loop iteration take one round trip, also those of values that are cached': async (
    t,
    store,
  ) => {
    await store.transact(async (tx) => {
      tx.put('p', 'k', '1');
      tx.emit('s', (seq) => String(seq));
    });
    const all = (): Promise<unknown> =>
      Promise.all([
        ...['a', 'k', 'k'].map((key) => store.get('p', key)),
        store.range('p'),
        store.lastSeq('s'),
        store.oldestSeq('s'),
        store.events('s', 0, 10),
        store.partitions(''),
      ]);
    t.equal(await tripsOf(t, all), 1);
    const page = (): Promise<unknown> => store.cached('page', ['p'], async () => (await store.range('p')).length);
    await page();
    t.equal(await tripsOf(t, () => Promise.all(Array.from({ length: 50 }, page))), 1);
  },

  'a refusal that was decided on reads of different moments is decided again': async (t, store, peer) => {
    const create = (from: PostgresStore, between: () => Promise<void>): Promise<string> =>
      from.transact(async (tx) => {
        const done = await tx.get('race', 'answer');
        if (done !== undefined) return done;
        await between();
        if ((await tx.get('race', 'slug')) !== undefined) throw new Error('taken');
        tx.put('race', 'slug', '1');
        tx.put('race', 'answer', 'created');
        return 'created';
      });
    let winner: Promise<string> | undefined;
    const later = create(store, async () => void (await (winner ??= create(peer, () => Promise.resolve()))));
    t.equal(await later, 'created');
  },

  'a group of transactions takes two round trips, if this process has seen the records that they read': async (
    t,
    store,
  ) => {
    const create = (i: number): Promise<void> =>
      store.transact(async (tx) => {
        if ((await tx.get('t', 'thread')) === undefined) throw new Error('no thread');
        await tx.unguarded.get('t', 'stats');
        tx.update('t', 'stats', (current) => String(Number(current ?? 0) + 1));
        tx.put('t', `c/${i}`, 'comment');
        tx.emit('s', (seq) => String(seq));
      });
    await store.transact(async (tx) => tx.put('t', 'thread', '{}'));
    await create(0);
    t.equal(await tripsOf(t, () => create(1)), 2, 'one');
    t.equal(await tripsOf(t, () => Promise.all(Array.from({ length: 40 }, (_, i) => create(i + 2)))), 2, 'forty');
    t.equal(await store.get('t', 'stats'), '42');
  },

  'what a transaction decides on a record that another process has changed, it decides again': async (
    t,
    store,
    peer,
  ) => {
    const put = (view: PostgresStore, value: string): Promise<void> =>
      view.transact(async (tx) => tx.put('d', 'k', value));
    const refuseOld = async (tx: Transaction): Promise<string> => {
      const value = await tx.get('d', 'k');
      if (value === 'old') throw new Error('it is old');
      return value ?? 'none';
    };
    const decisions: Readonly<Record<string, (tx: Transaction) => Promise<string>>> = {
      'a result without writes': async (tx) => (await tx.get('d', 'k')) ?? 'none',
      'an unguarded result': async (tx) => (await tx.unguarded.get('d', 'k')) ?? 'none',
      'a refusal': refuseOld,
      'a write': async (tx) => {
        const value = (await tx.get('d', 'k')) ?? 'none';
        tx.put('d', 'copy', value);
        return value;
      },
      'an unguarded write': async (tx) => {
        const value = (await tx.unguarded.get('d', 'k')) ?? 'none';
        tx.put('d', 'copy', value);
        return value;
      },
    };
    for (const [name, decide] of Object.entries(decisions)) {
      await put(store, 'old');
      await put(peer, name);
      t.equal(await store.transact(decide), name, name);
      await put(store, 'old');
      await peer.transact(async (tx) => tx.delete('d', 'k'));
      t.equal(await store.transact(decide), 'none', `${name}, deleted`);
      t.equal(await store.transact(decide), 'none', `${name}, still deleted`);
    }
    await put(peer, 'old');
    await t.rejects(store.transact(refuseOld), { message: 'it is old' });
  },

  'a record that two processes change in turns is soon read anew each time': async (t, store, peer) => {
    let runs = 0;
    const add = (view: PostgresStore): Promise<void> =>
      view.transact(async (tx) => {
        runs++;
        tx.put('hot', 'n', String(Number((await tx.unguarded.get('hot', 'n')) ?? 0) + 1));
      });
    for (let i = 0; i < 20; i++) await add(i % 2 === 0 ? store : peer);
    t.equal(await store.get('hot', 'n'), '20');
    t.ok(runs <= 24, `${runs} runs`);
  },

  'while nothing changes, the database is asked no more than about once a second': async (t, store) => {
    store.follow(() => {});
    for (let i = 0; i < 12; i++) {
      store.poll();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const calls = await tripsOf(t, async () => {
      for (let i = 0; i < 100; i++) store.poll();
      await new Promise((resolve) => setTimeout(resolve, 200));
    });
    t.ok(calls <= 1, `${calls} calls`);
  },
};

t.test('what reads and commits cost', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  const open = (): Promise<PostgresStore> => openPostgresStore({ url: postgres.url, connections: 3, name: 'store' });
  for (const [name, run] of Object.entries(cases)) {
    await t.test(name, async (t) => {
      const [store, peer] = [await open(), await open()];
      t.teardown(() => Promise.all([store.close(), peer.close()]));
      await run(t, store, peer);
    });
  }
});
