import fc from 'fast-check';
import t from 'tap';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import type { StoredEvent } from '../../src/ports/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';

type Step =
  | {
      readonly kind: 'put' | 'delete' | 'append';
      readonly view: 0 | 1;
      readonly partition: string;
      readonly key: string;
    }
  | { readonly kind: 'checkpoint' | 'reopen'; readonly view: 0 | 1 };

const view = fc.constantFrom(0 as const, 1 as const);
const steps = fc.array(
  fc.oneof(
    {
      weight: 9,
      arbitrary: fc.record({
        kind: fc.constantFrom('put' as const, 'delete' as const, 'append' as const),
        view,
        partition: fc.constantFrom('p', 'p/1', 'q'),
        key: fc.constantFrom('a', 'b', 'c/1', 'c/2', 'c/3', 'd'),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('checkpoint' as const, 'reopen' as const), view }) },
  ),
  { minLength: 1, maxLength: 40 },
);

t.test(
  'after writes, checkpoints and reopenings in any order, both stores read what a map would',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const parent = t.testdir();
    let folder = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (plan: Step[]) => {
        const path = `${parent}/${folder++}`;
        const open = (): Promise<LmdbStore> => openLmdbStore({ path, minFreeBytes: 0 });
        const views = [await open(), await open()] as [LmdbStore, LmdbStore];
        const model = new Map<string, Map<string, string>>();
        let events = 0;
        try {
          for (const [n, step] of plan.entries()) {
            const store = views[step.view];
            if ('partition' in step) {
              const records = model.get(step.partition) ?? new Map<string, string>();
              model.set(step.partition, records);
              const appended = `${records.get(step.key) ?? ''}+${n}`;
              await store.transact(async (tx) => {
                if (step.kind === 'put') tx.put(step.partition, step.key, String(n));
                else if (step.kind === 'delete') tx.delete(step.partition, step.key);
                else tx.update(step.partition, step.key, (current) => `${current ?? ''}+${n}`);
                tx.emit('env', (seq) => `{"seq":${seq},"n":${n}}`);
              });
              events++;
              if (step.kind === 'delete') records.delete(step.key);
              else records.set(step.key, step.kind === 'put' ? String(n) : appended);
            } else if (step.kind === 'checkpoint') await store.checkpoint();
            else {
              await store.close();
              views[step.view] = await open();
            }
            for (const reader of views) {
              for (const [partition, records] of model) {
                const expected = [...records]
                  .map(([key, value]) => ({ key, value }))
                  .sort((a, b) => (a.key < b.key ? -1 : 1));
                const found = await reader.range(partition);
                if (JSON.stringify(found) !== JSON.stringify(expected))
                  throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
              }
            }
          }
          for (const reader of views) {
            reader.poll();
            await until(async () => (await reader.lastSeq('env')) === events);
            const seqs = (await reader.events('env', 0, 1000)).map(({ seq }) => seq);
            if (seqs.join() !== Array.from({ length: events }, (_, i) => i + 1).join())
              throw new Error(`events ${seqs.join()} of ${events}`);
          }
          return true;
        } finally {
          await Promise.all(views.map((store) => store.close()));
        }
      }),
      { numRuns: 15 * CRASH_FACTOR },
    );
  },
);

/** The position in the text of an event, which only a follower that is being called may read. */
function seqIn(event: StoredEvent | null): number {
  return event === null ? 0 : (JSON.parse(event.text) as { seq: number }).seq;
}

t.test(
  'a process that was idle during checkpoints reads the records and gets every event that it missed',
  async (t) => {
    const path = t.testdir();
    const idle = await openLmdbStore({ path, minFreeBytes: 0 });
    const busy = await openLmdbStore({ path, minFreeBytes: 0 });
    t.teardown(async () => {
      await idle.close();
      await busy.close();
    });
    const received: number[] = [];
    idle.follow((_, event) => received.push(seqIn(event)));
    for (let i = 1; i <= 1_300; i++) {
      // One commit each.
      await busy.transact(async (tx) => {
        tx.put('p', 'n', String(i));
        tx.emit('env', (seq) => `{"seq":${seq}}`);
      });
      if (i % 500 === 0) await busy.checkpoint();
    }
    await busy.checkpoint();
    t.equal(await idle.get('p', 'n'), '1300');
    idle.poll();
    await until(() => received.length >= 1_300);
    t.same(
      received,
      Array.from({ length: 1_300 }, (_, i) => i + 1),
    );
  },
);

t.test('the ring wraps, with large and small commits, while the process of a follower is idle', async (t) => {
  const path = t.testdir();
  // 2 MB: the ring wraps about five times.
  const bounds = { ringRecords: 1_024, checkpointBytes: 256 * 1024, checkpointWaitMs: 0 };
  const idle = await openLmdbStore({ path, minFreeBytes: 0, bounds });
  const busy = await openLmdbStore({ path, minFreeBytes: 0, bounds });
  t.teardown(async () => {
    await idle.close();
    await busy.close();
  });
  const received: number[] = [];
  idle.follow((_, event) => received.push(seqIn(event)));
  const written = 130;
  for (let i = 1; i <= written; i++) {
    // Every second commit has 150 kB; with ü the lengths in characters and in bytes differ.
    await busy.transact(async (tx) => {
      tx.put('p', `k${i % 50}`, i % 2 === 0 ? 'ü'.repeat(75_000) + i : String(i));
      tx.emit('env', (seq) => `{"seq":${seq}}`);
    });
  }
  idle.poll();
  await until(() => received.length >= written);
  t.same(
    received,
    Array.from({ length: written }, (_, i) => i + 1),
  );
  for (const store of [idle, busy]) {
    const wrong = (await store.range('p')).filter(({ key, value }) => {
      const last = Array.from({ length: 50 }, (_, i) => written - i).find((i) => key === `k${i % 50}`) ?? 0;
      return value !== (last % 2 === 0 ? 'ü'.repeat(75_000) + last : String(last));
    });
    t.same(
      wrong.map(({ key }) => key),
      [],
    );
  }
});

t.test('many concurrent writes of a megabyte are committed in several groups', async (t) => {
  const store = await openLmdbStore({ path: t.testdir(), minFreeBytes: 0 });
  t.teardown(() => store.close());
  const text = 'x'.repeat(1_000_000);
  await Promise.all(Array.from({ length: 30 }, (_, i) => store.transact(async (tx) => tx.put(`p${i}`, 'k', text + i))));
  for (let i = 0; i < 30; i++)
    if ((await store.get(`p${i}`, 'k')) !== text + i) t.fail(`p${i} is not what was written`);
  await t.rejects(
    store.transact(async (tx) => tx.put('p', 'k', 'x'.repeat(40_000_000))),
    { code: 'payload_too_large' },
  );
  t.equal(await store.get('p', 'k'), undefined);
});
