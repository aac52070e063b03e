import { statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openLmdbEnv } from '../../src/adapters/lmdb/env/lmdb-env.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { openLmdbShared } from '../../src/adapters/lmdb/shared.ts';
import { until } from '../helpers/cluster.ts';
import { killLines, type LineProcess, startFixture } from '../helpers/line-process.ts';

const MB = 1024 * 1024;

async function opened(t: Test): Promise<{ path: string; store: LmdbStore }> {
  const path = t.testdir();
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  t.teardown(() => store.close());
  return { path, store };
}

/** Starts a process and resolves once it holds a snapshot. */
async function holder(t: Test, path: string, table: 'log' | 'tree'): Promise<LineProcess> {
  const helper = startFixture('snapshot-holder', path, table);
  t.teardown(() => killLines(helper));
  await until(() => helper.lines.includes('held'));
  return helper;
}

/** Commits one after the other, each of which takes pages of the log. */
async function write(store: LmdbStore, commits: number): Promise<void> {
  for (let i = 0; i < commits; i++) await store.transact(async (tx) => tx.put('p', `k${i}`, `"${'x'.repeat(20_000)}"`));
}

t.test('after a process was killed with a snapshot of the log, commits reuse its space', async (t) => {
  const { path, store } = await opened(t);
  await write(store, 10);
  await killLines(await holder(t, path, 'log'));
  const size = (): number => statSync(join(path, 'log', 'data.mdb')).size;
  await store.maintain();
  const before = size();
  await write(store, 400);
  t.ok(size() - before < 20 * MB, `${400 * 20_000} bytes of commits took ${size() - before}`);
});

t.test('after a process was killed with a snapshot of the base table, checkpoints reuse its space', async (t) => {
  const { path, store } = await opened(t);
  await write(store, 10);
  await killLines(await holder(t, path, 'tree'));
  await store.checkpoint();
  for (let i = 0; i < 10; i++) {
    await write(store, 10);
    await store.checkpoint();
  }
  const size = statSync(join(path, 'data.mdb')).size;
  t.ok(size < MB, `10 records of 20 kB take ${size} bytes`);
});

t.test('a process holds no snapshot between its reads', async (t) => {
  const { path, store } = await opened(t);
  await write(store, 1);
  const logReaders = openLmdbEnv(
    {
      path: join(path, 'log'),
      noSubdir: false,
      maxReaders: 1024,
      overlappingSync: false,
      encoding: 'binary',
      keyEncoding: 'uint32',
    },
    (root) => root,
  );
  const tableReaders = openLmdbEnv(
    { path, noSubdir: false, maxReaders: 1024, maxDbs: 8, overlappingSync: false },
    (root) => root,
  );
  t.teardown(() => Promise.all([logReaders.close(), tableReaders.close()]));
  const snapshots = (list: string): string[] =>
    list
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => /^\d+ \S+ \d+$/.test(line));
  t.equal(await store.get('p', 'k0'), `"${'x'.repeat(20_000)}"`);
  t.same(
    snapshots(logReaders.readerList()),
    [],
    'the snapshot of the log is released as soon as the log has been read',
  );
  store.releaseSnapshot();
  t.same(snapshots(tableReaders.readerList()), [], 'that of the base table when the caller says so');
  await store.get('p', 'k0');
  await new Promise((resolve) => setImmediate(resolve));
  t.same(snapshots(tableReaders.readerList()), [], 'or at the end of the event loop iteration');
});

t.test('a long run of reads sees what is committed meanwhile, because it moves to new snapshots', async (t) => {
  const { path, store } = await opened(t);
  await write(store, 1);
  const other = startFixture('store-writer', path, 'w');
  t.teardown(() => killLines(other));
  await until(() => other.lines.length > 10);
  const first = await store.get('totals', 'w');
  let now = first;
  // Without an event loop iteration in between.
  for (const giveUp = performance.now() + 10_000; now === first && performance.now() < giveUp;)
    now = await store.get('totals', 'w');
  t.ok(Number(now) > Number(first), `${first} -> ${now}`);
});

t.test('the shared memory holds no snapshot between calls either', async (t) => {
  const path = t.testdir();
  const shared = openLmdbShared({ path });
  const root = openLmdbEnv(
    { path, noSubdir: false, maxReaders: 1024, maxDbs: 4, overlappingSync: false, noSync: true },
    (environment) => environment,
  );
  t.teardown(() => Promise.all([shared.close(), root.close()]));
  await shared.put({ key: 'k', name: 'n', owner: '', text: 't' });
  await shared.hit('k', 5, 1_000);
  t.same((await shared.list('k')).length, 1);
  t.match(await shared.get('k', 'n'), { text: 't' });
  t.equal(await shared.total('k'), 0);
  await shared.sweep(0);
  t.match(root.readerList(), /^[^]*\d+ \S+ -\s*$/);
  await shared.maintain();
});

t.test('probe fails when the log has had no checkpoint for long', async (t) => {
  const path = t.testdir();
  const store = await openLmdbStore({ path, minFreeBytes: 0, bounds: { stalledMs: 20 } });
  t.teardown(() => store.close());
  await store.probe();
  await write(store, 1);
  await until(() =>
    store.probe().then(
      () => false,
      (error: Error) => /has had no checkpoint for \d+ s/.test(error.message),
    ),
  );
  await store.checkpoint();
  await store.probe();
});
