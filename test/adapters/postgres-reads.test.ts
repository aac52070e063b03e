import t, { type Test } from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { Connection } from '../../src/adapters/postgres/connection.ts';
import { Maintenance } from '../../src/adapters/postgres/store/maintenance.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { createComment } from '../../src/domain/comments/comments.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment, listEnvironments } from '../../src/domain/environments/environments.ts';
import { parseEvent } from '../../src/domain/events/parse-event.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { notifyOf } from '../../src/domain/notifications/notify.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Transaction } from '../../src/ports/store.ts';
import { storeSweeps } from '../../src/workers/background/sweeps.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { backendOf } from '../helpers/backend-of.ts';

/** The round trips that `work` takes. */
async function tripsOf(t: Test, work: () => Promise<unknown>): Promise<number> {
  return (await statementsOf(t, work)).length;
}

/** What looks for events have in their SQL. */
const LOOK = /pg_current_snapshot/;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The statements that `work` sends. */
async function statementsOf(t: Test, work: () => unknown): Promise<string[]> {
  const statements = t.capture(Connection.prototype, 'run', Connection.prototype.run);
  await work();
  statements.restore();
  return statements().map(({ args: [sql] }) => sql);
}

/**
 * Polls a store that nobody changes until it counts as quiet, which is when two looks in a row come much later than the
 * poll that asked for them. Returns a time just before the last look.
 */
async function untilQuietLook(t: Test, store: PostgresStore): Promise<number> {
  for (let lateLooks = 0; ;) {
    const polledAt = performance.now();
    let before = polledAt;
    let sent = await statementsOf(t, () => {
      store.poll();
      return pause(2);
    });
    while (!sent.some((sql) => LOOK.test(sql))) {
      before = performance.now();
      sent = await statementsOf(t, () => pause(2));
    }
    lateLooks = before - polledAt > 500 ? lateLooks + 1 : 0;
    if (lateLooks === 2) return before;
  }
}

/**
 * The statements that `work` sends, which has to end so many milliseconds after a look. Repeats what took longer, as
 * timers are late on a busy machine.
 */
async function inTime(t: Test, store: PostgresStore, ms: number, work: () => Promise<void>): Promise<string[]> {
  for (;;) {
    const lookedAt = await untilQuietLook(t, store);
    const sent = await statementsOf(t, work);
    if (performance.now() - lookedAt <= ms) return sent;
  }
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

  'a record that two processes change in turns is not read anew where an earlier value suffices': async (
    t,
    store,
    peer,
  ) => {
    let runs = 0;
    const add = (view: PostgresStore): Promise<void> =>
      view.transact(async (tx) => {
        runs++;
        await tx.unguarded.get('turns', 'n', (current) => Number(current) >= 0);
        tx.update('turns', 'n', (current) => String(Number(current ?? 0) + 1));
      });
    for (const view of [store, peer, store, peer]) await add(view);
    t.equal(await tripsOf(t, () => add(store)), 2);
    t.equal(await store.get('turns', 'n'), '5');
    t.equal(runs, 5);
  },

  'while nothing changes, the database is asked no more than about once a second': async (t, store) => {
    store.follow(() => {});
    await untilQuietLook(t, store);
    const begun = performance.now();
    const calls = await tripsOf(t, async () => {
      for (let i = 0; i < 100; i++) store.poll();
      await pause(200);
    });
    const most = 1 + Math.floor((performance.now() - begun) / 900);
    t.ok(calls <= most, `${calls} calls`);
  },

  'while nothing changes, a look for events goes with a read, if the last one was a while ago': async (t, store) => {
    store.follow(() => {});
    const sent = await inTime(t, store, 900, async () => {
      await pause(700);
      await store.get('p', 'k');
    });
    t.equal(sent.length, 1);
    t.match(sent[0], LOOK);
  },

  'checks of open sockets take all looks for events along while nothing changes': async (t, store) => {
    store.follow(() => {});
    const polls = setInterval(() => store.poll(), 250);
    t.teardown(() => clearInterval(polls));
    const sent = await inTime(t, store, 2 * 900 + 45, async () => {
      for (let check = 0; check < 2; check++) {
        await pause(900);
        await store.get('p', 'k');
      }
    });
    t.equal(sent.length, 2, 'every 900 ms, as the sockets are checked');
    for (const sql of sent) t.match(sql, LOOK);
  },

  'an announced event takes one round trip': async (t, store, peer) => {
    const emit = (): Promise<void> => peer.transact(async (tx) => tx.emit('announced', (seq) => `event ${seq}`));
    const received: string[] = [];
    let onEvent = (): void => {};
    store.follow((_, event) => {
      received.push(event?.text ?? 'end');
      onEvent();
    });
    for (const seq of [1, 2]) {
      await emit();
      const arrived = new Promise<void>((resolve) => (onEvent = resolve));
      const trips = await tripsOf(t, async () => {
        store.poll(new Map([['announced', seq]]));
        await arrived;
      });
      t.equal(trips, 1);
    }
    t.strictSame(received, ['event 1', 'event 2']);
  },

  'notifications of many comments take as few round trips as those of some': async (t, store) => {
    const ctx: Context = { store, shared: new MemoryShared(), clock: systemClock };
    const environment = await createEnvironment(ctx, { slug: 'notified' });
    const actor = backendOf(environment);
    for (const userId of ['ann', 'bob', 'cy']) await putUser(ctx, actor, userId, { name: userId });
    const notified = async (threads: number): Promise<number> => {
      const since = await store.lastSeq(streamOf(environment));
      const create = async (_: unknown, i: number): Promise<void> => {
        const { body } = await createThread(ctx, actor, 'room', { userId: 'ann', body: `${i}` }, null);
        const { thread } = JSON.parse(body) as { thread: { id: string } };
        for (const userId of ['bob', 'cy'])
          await createComment(ctx, actor, thread.id, { userId, body: 'hello', mentions: ['ann'] }, null);
      };
      await Promise.all(Array.from({ length: threads }, create));
      const events = await store.events(streamOf(environment), since, 1_000);
      const trips = await tripsOf(t, () =>
        notifyOf(
          ctx,
          environment,
          events.map(({ text }) => parseEvent(text)),
        ),
      );
      // Of bob's comment to ann, and of cy's to both.
      const made = (await store.events(streamOf(environment), since + events.length, 1_000)).length;
      t.equal(made, 3 * threads);
      return trips;
    };
    const [some, many] = [await notified(2), await notified(20)];
    t.ok(some <= 12 && many <= 12, `${some} and ${many} round trips`);
  },

  'sweeps that come often take as few round trips for many environments as for some': async (t, store) => {
    const ctx: Context = { store, shared: new MemoryShared(), clock: systemClock };
    const events = { retentionHours: 1, retentionCount: 10_000 };
    const sweeps = storeSweeps(ctx, { events }, { lowestConsumerCursor: () => Infinity });
    const often = sweeps.filter(({ everyMs }) => everyMs <= 60_000);
    const tripsWith = async (environments: number): Promise<number> => {
      for (let n = (await listEnvironments(ctx)).length; n < environments; n++)
        await createEnvironment(ctx, { slug: `swept-${n}` });
      for (const { run } of often) await run();
      return tripsOf(t, async () => {
        for (const { run } of often) await run();
      });
    };
    const some = await tripsWith(3);
    t.equal(await tripsWith(20), some);
    t.ok(some <= 2 * often.length, `${some} round trips of ${often.length} sweeps`);
  },
};

t.test('what reads and commits cost', { skip: skipWithout(...POSTGRES) }, async (t) => {
  // It begins at a random moment, and its statements would be counted.
  t.capture(Maintenance.prototype, 'run', async () => {});
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
