import { once } from 'node:events';
import { cpSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { compactStore } from '../../src/adapters/lmdb/compaction.ts';
import { openLmdbEnv } from '../../src/adapters/lmdb/env/lmdb-env.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { failingDisk, noFailingDisk } from '../helpers/failing-disk.ts';
import { killLines, startFixture, startFixtureWith } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const ALWAYS = { onlyWhenDue: false, minFreeBytes: 0 };
const RECORDS = 300;

const fileOf = (path: string): string => join(path, 'data.mdb');
const sizeOf = (path: string): number => statSync(fileOf(path)).size;
const valueOf = (i: number): string => `"${String(i).padStart(5, '0')} ${'é'.repeat(1_000)}"`;

/** Commits records and events, of which the last five are in the log only. */
async function fill(store: LmdbStore): Promise<void> {
  const commit = (from: number, to: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: to - from }, (_, i) =>
        store.transact(async (tx) => {
          tx.put(`p/${(from + i) % 3}`, `k${from + i}`, valueOf(from + i));
          tx.emit('env', (seq) => `{"seq":${seq}}`);
        }),
      ),
    );
  await commit(0, RECORDS - 5);
  await store.checkpoint();
  await commit(RECORDS - 5, RECORDS);
}

/** A store most of whose file is free space, closed. */
async function makeSparse(path: string): Promise<{ path: string; epoch: string }> {
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => store.transact(async (tx) => tx.put('large', String(i), 'x'.repeat(200_000)))),
  );
  await store.checkpoint();
  for (let i = 0; i < 40; i++) await store.transact(async (tx) => tx.delete('large', String(i)));
  await store.checkpoint();
  await fill(store);
  await store.close();
  return { path, epoch: store.epoch };
}

const template = await makeSparse(tempFolder(t));

/** A copy of such a store. */
function sparse(t: Test): { path: string; epoch: string } {
  const path = tempFolder(t);
  cpSync(template.path, path, { recursive: true });
  return { path, epoch: template.epoch };
}

/** Asserts that the store has everything that `sparse` has written, and takes further writes. */
async function verify(t: Test, path: string, epoch: string): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  const found: string[] = [];
  for (let i = 0; i < 3; i++) for (const { value } of await store.range(`p/${i}`)) found.push(value);
  t.strictSame(
    found.sort(),
    Array.from({ length: RECORDS }, (_, i) => valueOf(i)),
  );
  t.same(await store.range('large'), []);
  t.equal(store.epoch, epoch);
  const last = await store.lastSeq('env');
  const events = await store.events('env', 0, last);
  t.strictSame(
    events.map(({ seq }) => seq),
    Array.from({ length: last }, (_, i) => i + 1),
  );
  t.ok(last >= RECORDS);
  await store.transact(async (tx) => tx.emit('env', (seq) => `{"seq":${seq}}`));
  await store.checkpoint();
  t.equal(await store.lastSeq('env'), last + 1);
  const faults: object[] = [];
  for await (const fault of store.faults()) faults.push(fault);
  t.same(faults, []);
  await store.close();
}

t.test('compaction gives free space back and changes nothing else', async (t) => {
  const { path, epoch } = sparse(t);
  const before = sizeOf(path);
  t.match(await compactStore(path, { ...ALWAYS, onlyWhenDue: true }), { outcome: 'not due' }, 'not for a small store');
  t.equal(sizeOf(path), before);
  const result = await compactStore(path, ALWAYS);
  t.match(result, { outcome: 'compacted', before, after: sizeOf(path) });
  t.ok(sizeOf(path) < before / 4, `${before} -> ${sizeOf(path)}`);
  await verify(t, path, epoch);
  t.match(await compactStore(path, ALWAYS), { outcome: 'compacted' }, 'it can be repeated');
  await verify(t, path, epoch);
});

t.test('compaction has no effect while another process has the store open, even one that has not read', async (t) => {
  const { path, epoch } = sparse(t);
  const before = sizeOf(path);
  const holder = startFixture('snapshot-holder', path, 'log');
  t.teardown(() => killLines(holder));
  await until(() => holder.lines.includes('held'), 60_000);
  t.same(await compactStore(path, ALWAYS), { outcome: 'in use', pids: [holder.child.pid] });
  t.equal(sizeOf(path), before);
  t.notOk(existsSync(join(path, 'compacting')), 'the copy is removed');
  await killLines(holder);
  t.match(await compactStore(path, ALWAYS), { outcome: 'compacted' });
  await verify(t, path, epoch);
});

t.test('compaction is refused when the disk has too little space, and for a damaged table', async (t) => {
  const { path, epoch } = sparse(t);
  t.match(await compactStore(path, { ...ALWAYS, minFreeBytes: 2 ** 60 }), { outcome: 'no space' });
  await verify(t, path, epoch);
  const root = openLmdbEnv(
    { path, noSubdir: false, maxReaders: 1024, maxDbs: 8, overlappingSync: false },
    (environment) => environment,
  );
  const meta = root.openDB<string, string>('meta', { encoding: 'string' });
  await root.transaction(() => void meta.put('format', JSON.stringify({ version: 3, epoch })));
  await root.close();
  await t.rejects(compactStore(path, ALWAYS), { name: 'DataError', message: /has format 3/ });
});

t.test(
  'after SIGKILL at any system call that changes a file, the store is whole',
  { skip: noFailingDisk, timeout: CRASH_FACTOR * 600_000 },
  async (t) => {
    const disk = failingDisk(t, 'store');
    const path = join(disk.folder, 'store');
    cpSync(template.path, path, { recursive: true });
    const kills: Record<string, number> = {};
    for (const call of Array<string[]>(CRASH_FACTOR).fill(['rename', 'fsync', 'chmod', 'unlink']).flat()) {
      // Each run is killed one call later than the one before, until one comes to its end.
      for (let skip = 0, ended = false; !ended; skip++) {
        disk.failCalls({ id: skip, call, errno: 'kill', skip, times: 1 });
        const { child, lines } = startFixtureWith(disk.env, 'compactor', path);
        await once(child, 'close');
        disk.heal();
        ended = child.signalCode === null;
        t.strictSame(lines, ended ? ['compacted'] : [], `${call} ${skip}`);
        if (!ended) kills[call] = (kills[call] ?? 0) + 1;
        await verify(t, path, template.epoch);
      }
    }
    t.strictSame(Object.keys(kills), ['rename', 'fsync', 'chmod', 'unlink']);
    t.comment(JSON.stringify(kills));
  },
);
