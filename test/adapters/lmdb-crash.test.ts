import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import t from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { storeFiles } from '../../src/adapters/lmdb/env/store-files.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { killLines, type LineProcess, startFixture } from '../helpers/line-process.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { verifyWrites } from '../helpers/verify-writes.ts';

/** A process that prints the ids of its confirmed commits. */
const startWriter = (path: string, name: string, role = '', bounds = '{}'): LineProcess =>
  startFixture('store-writer', path, name, role, bounds);

/** Bounds at which the log is rotated and its ring wraps after some hundred commits, and a chunk has few events. */
const SMALL_BOUNDS: Partial<StoreBounds> = {
  rotateBytes: 256 * 1024,
  rotationCheckMs: 0,
  checkpointBytes: 64 * 1024,
  checkpointWaitMs: 5,
  ringRecords: 128,
  chunkEvents: 7,
  reloadEvents: 10,
  arenaBlockBytes: 8_192,
  tableCacheEntries: 20,
};

/**
 * The bounds of a server with a process that does checkpoints; small ones with one that also rotates the log and keeps
 * 100 events; and much text, so that the files and LMDB's maps of them grow from nothing.
 */
const SETTINGS = [
  { when: '', bounds: {}, role: 'checkpoint', rounds: 2 * CRASH_FACTOR },
  {
    when: ' while the ring wraps, the log is rotated and events are deleted many times per second',
    bounds: SMALL_BOUNDS,
    role: 'retain',
    rounds: 2 * CRASH_FACTOR,
  },
  {
    when: ' while the files grow, and thousands of partitions are made',
    bounds: {},
    role: 'wide',
    rounds: CRASH_FACTOR,
  },
] as const;

for (const { when, bounds, role, rounds } of SETTINGS) {
  const start = (path: string, round: string): LineProcess[] =>
    ['', role].map((own) => startWriter(path, `${own}${round}`, own, JSON.stringify(bounds)));

  t.test(
    `SIGKILL of all writers, again and again${when}: nothing confirmed is lost, nothing is written partly`,
    { timeout: CRASH_FACTOR * 300_000 },
    async (t) => {
      const path = tempFolder(t);
      const writers: LineProcess[] = [];
      for (let round = 0; round < rounds; round++) {
        const pair = start(path, String(round));
        writers.push(...pair);
        await until(() => pair.every(({ lines }) => lines.length > 40 + (round % 3) * 60));
        await Promise.all(pair.map(killLines));
      }
      const store = await openLmdbStore({ path, minFreeBytes: 0, bounds });
      t.teardown(() => store.close());
      await verifyWrites(
        t,
        store,
        writers.flatMap(({ lines }) => lines),
      );
      t.comment(`${writers.length} kills, ${await store.lastSeq('env')} commits`);
    },
  );

  t.test(`a power cut${when} keeps everything that was confirmed`, { timeout: CRASH_FACTOR * 300_000 }, async (t) => {
    const folder = tempFolder(t);
    const live = join(folder, 'live');
    const writers = start(live, '');
    t.teardown(() => Promise.all(writers.map(killLines)));
    for (let cut = 0; cut < rounds; cut++) {
      const before = writers.map(({ lines }) => lines.length);
      await until(() => writers.every(({ lines }, i) => lines.length > (before[i] ?? 0) + 50));
      for (const { child } of writers) child.kill('SIGSTOP');
      const confirmed = writers.flatMap((writer) => [...writer.lines]);
      // The content of the disk at this moment, without unflushed commits and without the locks, which are never
      // flushed.
      const copy = join(folder, `cut${cut}`);
      for (const file of storeFiles(live).filter((path) => existsSync(path))) {
        cpSync(file, join(copy, relative(live, file)));
        mkdirSync(join(copy, relative(live, dirname(file)), 'opening'));
        writeFileSync(join(copy, relative(live, dirname(file)), 'opening', 'data.mdb'), Buffer.alloc(8_192));
      }
      for (const { child } of writers) child.kill('SIGCONT');
      const store = await openLmdbStore({ path: copy, minFreeBytes: 0, bounds, lastFlushed: true });
      await verifyWrites(t, store, confirmed);
      await store.close();
    }
    await Promise.all(writers.map(killLines));
  });
}
