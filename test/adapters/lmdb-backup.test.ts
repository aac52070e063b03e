import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { copyStore, inspectStore, renewEpoch } from '../../src/adapters/lmdb/backup.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const COPIES = 8;

interface Writer {
  readonly child: ChildProcess;
  readonly confirmed: string[];
}

function startWriter(path: string, name: string, role = ''): Writer {
  const child = spawn(process.execPath, [...fixtureArgs('store-writer'), path, name, role], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const confirmed: string[] = [];
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', (line) => confirmed.push(line));
  return { child, confirmed };
}

/**
 * Opens a copy as after a restart of the machine, and checks that it is consistent and has everything confirmed before.
 */
async function verify(t: Test, path: string, confirmed: readonly string[]): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0, lastFlushed: true });
  const found = new Set<string>();
  for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
  t.same(
    confirmed.filter((id) => !found.has(id)),
    [],
    `all ${confirmed.length} writes that were confirmed before are there`,
  );
  t.equal(await store.lastSeq('env'), found.size, 'one event per record');
  const counted = (await store.range('totals')).reduce((sum, { value }) => sum + Number(value), 0);
  t.equal(counted, found.size, 'the counters agree with the records');
  await store.transact(async (tx) => tx.put('p/0', 'after', '1'));
  t.equal(await store.get('p/0', 'after'), '1', 'it takes writes');
  await store.close();
}

t.test('copies made while two processes write and do checkpoints are each the store as of one moment', async (t) => {
  const folder = tempFolder(t);
  const live = join(folder, 'live');
  const writers = [startWriter(live, 'w'), startWriter(live, 'f', 'checkpoint')];
  t.teardown(async () => {
    for (const { child } of writers) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
    }
  });
  await until(() => writers.every(({ confirmed }) => confirmed.length > 100));
  for (let copy = 0; copy < COPIES; copy++) {
    const counts = writers.map(({ confirmed }) => confirmed.length);
    const confirmed = writers.flatMap((writer) => [...writer.confirmed]);
    const to = join(folder, `copy${copy}`);
    await copyStore(live, to);
    t.same(readdirSync(to), ['data.mdb'], 'nothing but the data is left behind');
    const { records, events, environments } = await inspectStore(to);
    t.ok(events >= confirmed.length && records >= events, `${records} records, ${events} events`);
    t.equal(environments, 0);
    await verify(t, to, confirmed);
    await until(() => writers.every((writer, i) => writer.confirmed.length > (counts[i] ?? 0) + 50));
  }
});

t.test('renewEpoch changes the epoch and nothing else', async (t) => {
  const folder = tempFolder(t);
  const store = await openLmdbStore({ path: join(folder, 'live'), minFreeBytes: 0 });
  await store.transact(async (tx) => {
    tx.put('envs', 'env_1', '{}');
    tx.emit('env_1', (seq) => `{"seq":${seq}}`);
  });
  const copy = join(folder, 'copy');
  await copyStore(join(folder, 'live'), copy);
  const before = await inspectStore(copy);
  t.match(before, { epoch: store.epoch, environments: 1, records: 1, events: 1, format: 4 });
  const epoch = await renewEpoch(copy);
  t.not(epoch, store.epoch);
  t.match(await inspectStore(copy), { epoch, environments: 1, records: 1, events: 1 });
  await store.close();
  const restored = await openLmdbStore({ path: copy, minFreeBytes: 0 });
  t.equal(restored.epoch, epoch);
  t.equal(await restored.lastSeq('env_1'), 1);
  await restored.close();
});

t.test('a folder without a store is refused', async (t) => {
  const folder = tempFolder(t);
  await t.rejects(inspectStore(folder), { code: 'ENOENT' });
});
