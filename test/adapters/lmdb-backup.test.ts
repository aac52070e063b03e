import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { copyStore, inspectStore, renewEpoch } from '../../src/adapters/lmdb/backup.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../conformance/store.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const COPIES = 8;

interface Writer {
  readonly child: ChildProcess;
  readonly answered: string[];
}

function startWriter(path: string, name: string, role = ''): Writer {
  const child = spawn(process.execPath, ['--import=tsx', 'test/fixtures/store-writer.ts', path, name, role], { stdio: ['ignore', 'pipe', 'inherit'] });
  const answered: string[] = [];
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => answered.push(line));
  return { child, answered };
}

/** Opens a copy as a machine does that was started since, and looks whether all that was answered before is in it, and whole. */
async function verify(t: Test, path: string, answered: readonly string[]): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0, lastFlushed: true });
  const found = new Set<string>();
  for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
  t.same(answered.filter((id) => !found.has(id)), [], `all ${answered.length} writes that were answered before are there`);
  t.equal(await store.lastSeq('env'), found.size, 'one event a record');
  const counted = (await store.range('totals')).reduce((sum, { value }) => sum + Number(value), 0);
  t.equal(counted, found.size, 'the counters agree with the records');
  await store.transact(async (tx) => tx.put('p/0', 'after', '1'));
  t.equal(await store.get('p/0', 'after'), '1', 'it takes writes');
  await store.close();
}

t.test('copies made while two processes write and fold are each one moment of the store', async (t) => {
  const folder = tempFolder(t);
  const live = join(folder, 'live');
  const writers = [startWriter(live, 'w'), startWriter(live, 'f', 'fold')];
  t.teardown(async () => {
    for (const { child } of writers) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
    }
  });
  await until(() => writers.every(({ answered }) => answered.length > 100));
  for (let copy = 0; copy < COPIES; copy++) {
    const counts = writers.map(({ answered }) => answered.length);
    const answered = writers.flatMap((writer) => [...writer.answered]);
    const to = join(folder, `copy${copy}`);
    await copyStore(live, to);
    t.same(readdirSync(to), ['data.mdb'], 'nothing but the data is left behind');
    const { records, events, environments } = await inspectStore(to);
    t.ok(events >= answered.length && records >= events, `${records} records, ${events} events`);
    t.equal(environments, 0);
    await verify(t, to, answered);
    await until(() => writers.every((writer, i) => writer.answered.length > (counts[i] ?? 0) + 50));
  }
});

t.test('a renewed epoch is another name of the same log', async (t) => {
  const folder = tempFolder(t);
  const store = await openLmdbStore({ path: join(folder, 'live'), minFreeBytes: 0 });
  await store.transact(async (tx) => {
    tx.put('envs', 'env_1', '{}');
    tx.emit('env_1', (seq) => `{"seq":${seq}}`);
  });
  const copy = join(folder, 'copy');
  await copyStore(join(folder, 'live'), copy);
  const before = await inspectStore(copy);
  t.match(before, { epoch: store.epoch, environments: 1, records: 1, events: 1, format: 3 });
  const epoch = await renewEpoch(copy);
  t.not(epoch, store.epoch);
  t.match(await inspectStore(copy), { epoch, environments: 1, records: 1, events: 1 });
  await store.close();
  const restored = await openLmdbStore({ path: copy, minFreeBytes: 0 });
  t.equal(restored.epoch, epoch);
  t.equal(await restored.lastSeq('env_1'), 1);
  await restored.close();
});

t.test('what is no store is refused', async (t) => {
  const folder = tempFolder(t);
  await t.rejects(inspectStore(folder), { code: 'ENOENT' });
});
