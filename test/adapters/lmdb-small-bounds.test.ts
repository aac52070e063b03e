import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { Random } from '../fuzz/random.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { smallBounds, StoreTrial, type TrialCounts } from '../helpers/store-trial.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** Which trials are done: the same at each run, unless the environment variable TRIAL_SEED is set. */
const SEED = Number(process.env['TRIAL_SEED'] ?? 1);
const TRIALS = 8 * CRASH_FACTOR;

t.test(
  'with bounds that are reached at once, several stores on one folder do what a memory double does',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const sums: Record<string, number> = {};
    for (let seed = SEED; seed < SEED + TRIALS; seed++) {
      const random = new Random(seed);
      const bounds = smallBounds(random);
      const trial = new StoreTrial(`${tempFolder(t)}/store`, random, bounds);
      await trial.run(100).catch((error: unknown) => t.fail(`TRIAL_SEED=${seed}`, { bounds, error }));
      for (const [name, count] of Object.entries(trial.counts) as [keyof TrialCounts, number][])
        sums[name] = (sums[name] ?? 0) + count;
    }
    t.comment(JSON.stringify(sums));
    for (const [name, count] of Object.entries(sums)) t.ok(count > 0, name);
  },
);

t.test('ten thousand partitions are listed in order, page by page, by all processes', async (t) => {
  const path = tempFolder(t);
  const open = async () => {
    const store = await openLmdbStore({
      path,
      minFreeBytes: 0,
      bounds: { tableCacheEntries: 100, checkpointBytes: 200_000 },
    });
    t.teardown(() => store.close());
    return store;
  };
  const [writer, peer] = [await open(), await open()];
  const names = Array.from({ length: 10_000 }, (_, i) => `p/${String((i * 7_919) % 10_000).padStart(5, '0')}`);
  for (let from = 0; from < names.length; from += 1_000) {
    await writer.transact(async (tx) => names.slice(from, from + 1_000).forEach((name) => tx.put(name, 'k', name)));
    if (from === 5_000) await writer.checkpoint();
  }
  for (const store of [writer, peer, await open()]) {
    const found: string[] = [];
    for (
      let page = await store.partitions('p/', { limit: 700 });
      page.length > 0;
      page = await store.partitions('p/', { limit: 700, after: found.at(-1) })
    )
      found.push(...page);
    t.strictSame(found, names.toSorted());
    for (const name of names.slice(0, 300)) if ((await store.get(name, 'k')) !== name) t.fail(name);
  }
});

t.test(
  'a process that was idle while the log was overwritten gets no event from before it opened the store',
  async (t) => {
    const path = tempFolder(t);
    const open = async () => {
      const store = await openLmdbStore({ path, minFreeBytes: 0, bounds: { ringRecords: 12 } });
      t.teardown(() => store.close());
      return store;
    };
    const writer = await open();
    const emit = (stream: string) => writer.transact(async (tx) => tx.emit(stream, (seq) => `${seq}`));
    for (const stream of ['old', 'old', 'ended']) await emit(stream);
    await writer.checkpoint();
    const idle = await open();
    const received: unknown[] = [];
    idle.follow((stream, event) => received.push([stream, event?.seq ?? null]));
    await emit('old');
    await emit('new');
    await writer.transact(async (tx) => tx.endStream('ended'));
    for (let n = 0; n < 40; n++) {
      await writer.transact(async (tx) => tx.put('p', 'k', `${n}`));
      await writer.checkpoint();
    }
    idle.poll();
    t.strictSame(received, [
      ['ended', null],
      ['new', 1],
      ['old', 3],
    ]);
  },
);
