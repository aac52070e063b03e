import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import t, { type Test } from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/engine/bounds.ts';
import { storeFiles } from '../../src/adapters/lmdb/env/store-files.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { killLines, type LineProcess, startFixture } from '../helpers/line-process.ts';

/** A process that prints the ids of its confirmed commits. */
const startWriter = (path: string, name: string, role = '', bounds = '{}'): LineProcess => startFixture('store-writer', path, name, role, bounds);

async function verify(t: Test, store: LmdbStore, confirmed: readonly string[]): Promise<void> {
  const found = new Set<string>();
  for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
  t.same(confirmed.filter((id) => !found.has(id)), [], `all ${confirmed.length} confirmed writes are there`);
  const inStream = new Map<string, number>();
  let expected = 1;
  let gaps = 0;
  for (let since = 0; ; ) {
    const events = await store.events('env', since, 1000);
    for (const { seq, text } of events) {
      if (seq !== expected++) gaps++;
      const { id } = JSON.parse(text) as { id: string };
      inStream.set(id, (inStream.get(id) ?? 0) + 1);
    }
    if (events.length === 0) break;
    since = events.at(-1)?.seq ?? since;
  }
  t.equal(gaps, 0, 'positions have no gap');
  t.equal(inStream.size, found.size, 'every record has its event');
  t.equal([...inStream.values()].filter((count) => count !== 1).length, 0, 'no event is duplicated');
  const totals = (await store.range('totals')).reduce((sum, { value }) => sum + Number(value), 0);
  t.equal(totals, found.size, 'counters agree with the records');
}

/** Bounds at which a log is rotated after some hundred commits. */
const SMALL_BOUNDS: Partial<StoreBounds> = { rotateBytes: 256 * 1024, rotationCheckMs: 0, checkpointBytes: 256 * 1024 };

/** Starts two writers of which one also maintains the store, with small bounds. */
function rotatingWriters(path: string, name: string): LineProcess[] {
  const bounds = JSON.stringify(SMALL_BOUNDS);
  return [startWriter(path, `w${name}`, '', bounds), startWriter(path, `m${name}`, 'maintain', bounds)];
}

t.test('SIGKILL of writers and of a process that does checkpoints, again and again: nothing confirmed is lost, nothing is written partly', { timeout: CRASH_FACTOR * 300_000 }, async (t) => {
  const path = t.testdir();
  const writers: LineProcess[] = [];
  for (let round = 0; round < 10 * CRASH_FACTOR; round++) {
    // Every other pair rotates the log many times per second.
    const pair = round % 2 === 0 ? [startWriter(path, `w${round}`), startWriter(path, `f${round}`, 'checkpoint')] : rotatingWriters(path, String(round));
    writers.push(...pair);
    await until(() => pair.every(({ lines }) => lines.length > 40 + (round % 10) * 20));
    await Promise.all(pair.map(killLines));
  }
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  t.teardown(() => store.close());
  await verify(t, store, writers.flatMap(({ lines }) => lines));
});

for (const [when, start] of [
  ['', (path: string) => [startWriter(path, 'w'), startWriter(path, 'f', 'checkpoint')]],
  [' while the log is rotated many times per second', (path: string) => rotatingWriters(path, '')],
] as const) {
  t.test(`a power cut${when} keeps everything that was confirmed`, { timeout: CRASH_FACTOR * 300_000 }, async (t) => {
    const folder = t.testdir();
    const live = join(folder, 'live');
    const writers = start(live);
    t.teardown(() => Promise.all(writers.map(killLines)));
    for (let cut = 0; cut < 5 * CRASH_FACTOR; cut++) {
      const before = writers.map(({ lines }) => lines.length);
      await until(() => writers.every(({ lines }, i) => lines.length > (before[i] ?? 0) + 50));
      for (const { child } of writers) child.kill('SIGSTOP');
      const confirmed = writers.flatMap((writer) => [...writer.lines]);
      // The content of the disk at this moment, without unflushed commits and without the locks, which are never flushed.
      const copy = join(folder, `cut${cut}`);
      for (const file of storeFiles(live).filter((path) => existsSync(path))) {
        cpSync(file, join(copy, relative(live, file)));
        mkdirSync(join(copy, relative(live, dirname(file)), 'opening'));
        writeFileSync(join(copy, relative(live, dirname(file)), 'opening', 'data.mdb'), Buffer.alloc(8_192));
      }
      for (const { child } of writers) child.kill('SIGCONT');
      const store = await openLmdbStore({ path: copy, minFreeBytes: 0, lastFlushed: true });
      await verify(t, store, confirmed);
      await store.close();
    }
  });
}
