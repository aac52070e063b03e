import { existsSync, mkdirSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { copyStore, inspectStore } from '../../src/adapters/lmdb/backup.ts';
import { copyLog, sealLog } from '../../src/adapters/lmdb/engine/commit-log.ts';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { closeRemovedLocks } from '../../src/adapters/lmdb/env/opening-lock.ts';
import { makeLog } from '../../src/adapters/lmdb/env/log-file.ts';
import { rotateLog } from '../../src/adapters/lmdb/engine/log-rotation.ts';
import { Snapshots } from '../../src/adapters/lmdb/engine/snapshots.ts';
import { StoreView } from '../../src/adapters/lmdb/engine/store-view.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { storeFiles } from '../../src/adapters/lmdb/env/store-files.ts';
import type { OpenSnapshot } from '../../src/ports/store-operations.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { killLines, type LineProcess, startFixture, startLines } from '../helpers/line-process.ts';
import { withoutStrace } from '../helpers/unflushed.ts';

const MB = 1024 * 1024;
/** How many processes that rotate the log are killed; each has rotated it once more often than the one before. */
const ROTATORS = 2;
/** Rotations beside writers. */
const ROTATIONS = 5 * CRASH_FACTOR;
/** Bounds that commits of 20 kB reach: the ring takes 1 MB. */
const SMALL: Partial<StoreBounds> = {
  rotateBytes: MB,
  ringRecords: 512,
  checkpointBytes: 256 * 1024,
  checkpointWaitMs: 0,
};

function started(t: Test, fixture: string, ...args: string[]): LineProcess {
  const helper = startFixture(fixture, ...args);
  t.teardown(() => killLines(helper));
  return helper;
}

async function opened(t: Test, path: string, bounds: Partial<StoreBounds> = {}): Promise<LmdbStore> {
  const store = await openLmdbStore({ path, minFreeBytes: 0, bounds });
  t.teardown(() => store.close());
  return store;
}

/** Commits one after the other, each an event and a record of `characters`. */
async function write(store: LmdbStore, from: number, to: number, characters = 20_000): Promise<void> {
  for (let i = from; i < to; i++) {
    await store.transact(async (tx) => {
      tx.put(`p/${i % 7}`, `k${String(i).padStart(5, '0')}`, `"${'x'.repeat(characters)}"`);
      tx.emit('env', (seq) => `{"seq":${seq},"n":${i}}`);
    });
  }
}

const logs = (path: string): string[] =>
  readdirSync(path)
    .filter((name) => name.startsWith('log'))
    .sort();
const bytesOf = (path: string): number => storeFiles(path).reduce((sum, file) => sum + statSync(file).size, 0);

/** What a symbolic link leads to; empty if it is gone. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Calls `maintain` until `check` holds. */
async function maintainUntil(store: LmdbStore, check: () => boolean | Promise<boolean>): Promise<void> {
  await until(async () => {
    await store.maintain();
    return check();
  });
}

/** Requires that the store has every write that was confirmed, and every event once and in order. */
async function requireConfirmed(t: Test, path: string, writers: readonly LineProcess[]): Promise<void> {
  const store = await opened(t, path);
  const found = new Set<string>();
  for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
  const confirmed = writers.flatMap(({ lines }) => lines);
  t.same(
    confirmed.filter((id) => !found.has(id)),
    [],
    `all ${confirmed.length} confirmed writes are there`,
  );
  const last = await store.lastSeq('env');
  let seen = 0;
  for (let since = 0; since < last; since += 1_000) {
    for (const { seq, text } of await store.events('env', since, 1_000))
      if (seq === ++seen && (JSON.parse(text) as { seq: number }).seq !== seq) t.fail(`event ${seq}`);
  }
  t.equal(seen, last, 'no event is missing or duplicated');
}

t.test(
  'a log whose file has grown too large continues in another file, for all processes that have it open',
  async (t) => {
    const path = t.testdir();
    const store = await opened(t, path, { rotateBytes: MB });
    const peer = await opened(t, path);
    const received: number[] = [];
    peer.follow((_stream, event) => received.push(event?.seq ?? 0));
    await write(store, 0, 30);
    await maintainUntil(store, () => logs(path).join() === 'log-1');
    await Promise.all([write(store, 30, 60), write(peer, 60, 90)]);
    peer.poll();
    t.same(
      received,
      Array.from({ length: 90 }, (_, i) => i + 1),
      'a follower gets every event once and in order',
    );
    await maintainUntil(store, () => logs(path).join() === 'log-2');
    const third = await opened(t, path);
    for (const reader of [store, peer, third]) {
      t.equal((await reader.events('env', 0, 1_000)).length, 90);
      t.equal(await reader.lastSeq('env'), 90);
      t.equal((await reader.range('p/3')).length, 13);
    }
  },
);

t.test('a process that was idle while the log was overwritten and rotated reads everything', async (t) => {
  const path = t.testdir();
  const idle = await opened(t, path, SMALL);
  const received: number[] = [];
  idle.follow((_stream, event) => received.push(event?.seq ?? 0));
  const store = await opened(t, path, SMALL);
  await write(store, 0, 80, 100_000);
  await maintainUntil(store, () => logs(path).join() === 'log-1');
  await write(store, 80, 90);
  await store.checkpoint();
  await write(store, 90, 95);
  await write(idle, 95, 100);
  t.equal(await store.lastSeq('env'), 100, 'its commits follow those of the others');
  t.same(
    received,
    Array.from({ length: 100 }, (_, i) => i + 1),
  );
  t.equal((await idle.range('p/3')).length, (await store.range('p/3')).length);
});

t.test(
  'a stopped process with a snapshot of the log keeps one file, is named, and the file is removed after it ends',
  async (t) => {
    const path = t.testdir();
    const store = await opened(t, path, SMALL);
    await write(store, 0, 1);
    const helper = started(t, 'snapshot-holder', path, 'log');
    await until(() => helper.lines.includes('held'));
    const pid = helper.child.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    for (let i = 1; i < 40; i++) {
      await write(store, 10 * i, 10 * (i + 1));
      await store.maintain();
      // maintain checks the size only once per second.
      if (i === 20) await maintainUntil(store, () => logs(path).length === 2);
    }
    // 400 commits of 20 kB and the pages above them: 32 MB without a bound.
    t.ok(bytesOf(path) < 25 * MB, `the store takes ${bytesOf(path)} bytes, of which 8 MB are records`);
    const held = store.openSnapshots().find((snapshot) => snapshot.pid === pid && snapshot.table === 'log');
    t.match(held, { table: 'log', pid, command: /snapshot-holder/, stopped: true });
    await until(() => (store.openSnapshots().find((snapshot) => snapshot.pid === pid)?.heldMs ?? 0) > 50);
    await killLines(helper);
    await maintainUntil(store, () => logs(path).length === 1);
    t.same(store.openSnapshots(), []);
  },
);

t.test(
  'a stopped process with a snapshot of the base table is ended when the table has grown, and its space is reused',
  async (t) => {
    const path = t.testdir();
    const store = await opened(t, path);
    await write(store, 0, 10);
    await store.checkpoint();
    const helper = started(t, 'snapshot-holder', path, 'tree');
    await until(() => helper.lines.includes('held'), 60_000);
    const pid = helper.child.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    await until(() => store.openSnapshots().some((snapshot) => snapshot.pid === pid && snapshot.stopped));
    const held = (): OpenSnapshot | undefined => store.openSnapshots().find((snapshot) => snapshot.pid === pid);
    for (let i = 0; (held()?.grownBytes ?? Number.POSITIVE_INFINITY) < MB; i++) {
      await write(store, 0, 10);
      await store.checkpoint();
      if (i > 1_000) t.fail('the table does not grow');
    }
    await until(() => (held()?.idleMs ?? 0) > 50);
    t.match(held(), { table: 'tree', stopped: true });
    const size = (): number => statSync(join(path, 'data.mdb')).size;
    const grown = size();
    const wrong = { ...(held() as OpenSnapshot), pid: process.ppid };
    t.equal(store.killHolder(wrong), false, 'a process that does not have the store open is not ended');
    t.equal(store.killHolder(held() as OpenSnapshot), true);
    await until(() => helper.child.signalCode === 'SIGKILL');
    await until(async () => {
      await store.maintain();
      return store.openSnapshots().length === 0;
    });
    for (let i = 0; i < 10; i++) {
      await write(store, 0, 10);
      await store.checkpoint();
    }
    t.equal(size(), grown, 'the file grows no more');
  },
);

t.test('after a crash between the seal and its record, one log has every commit', async (t) => {
  const path = t.testdir();
  const first = await openLmdbStore({ path, minFreeBytes: 0 });
  await write(first, 0, 10);
  await first.checkpoint();
  await write(first, 10, 20);
  await first.close();
  const database = await openDatabase(path);
  const view = new StoreView(database);
  await database.log.transaction(() => {
    void makeLog(path, 1, (log) => copyLog(database.log, log, view.checkpointed, view.head)).close();
    sealLog(database.log, view.head, 1);
  });
  await Promise.all([database.log.close(), database.root.close()]);

  const copy = tempFolder(t);
  const store = await opened(t, path);
  const peer = await opened(t, path);
  t.equal(await peer.lastSeq('env'), 20);
  await write(peer, 20, 30);
  t.equal(await store.lastSeq('env'), 30);
  t.same(logs(path), ['log', 'log-1']);
  await copyStore(path, copy);
  t.match(await inspectStore(copy), { events: 30, records: 30 });
  await maintainUntil(store, () => logs(path).join() === 'log-1');
});

t.test(
  'a process that was idle while the log was rotated twice without a checkpoint commits to the newest log',
  async (t) => {
    const path = t.testdir();
    const idle = await opened(t, path);
    await write(idle, 0, 3);
    const rotator = await openDatabase(path);
    const view = new StoreView(rotator);
    const snapshots = new Snapshots(rotator);
    mkdirSync(join(path, 'removed-log-7'));
    for (const expected of ['log-1', 'log-2']) {
      await rotateLog(rotator, view);
      snapshots.removeReplaced();
      t.equal(logs(path).join(), expected);
    }
    await write(idle, 3, 5);
    const other = await opened(t, path);
    t.equal(await other.lastSeq('env'), 5);
    t.equal(logs(path).join(), 'log-2', 'no log is created again');
    t.notOk(existsSync(join(path, 'removed-log-7')), 'an interrupted removal is finished');
    await Promise.all([rotator.log.close(), rotator.root.close()]);
  },
);

t.test(
  'a process closes all files of logs that were replaced: the opening locks after a minute, at the next rotation',
  { skip: existsSync('/proc/self/fd') ? false : 'needs /proc' },
  async (t) => {
    const path = t.testdir();
    const begun = performance.now();
    const peer = await opened(t, path);
    const rotator = await openDatabase(path);
    const view = new StoreView(rotator);
    const snapshots = new Snapshots(rotator);
    const removedFiles = (): string[] =>
      readdirSync('/proc/self/fd').flatMap((fd) => {
        const target = linkOf(`/proc/self/fd/${fd}`);
        return target.startsWith(path) && target.endsWith(' (deleted)') ? [target] : [];
      });
    const rotate = async (): Promise<void> => {
      await rotateLog(rotator, view);
      await write(peer, 0, 1, 10);
      snapshots.removeReplaced();
    };
    for (let i = 0; i < 3; i++) await rotate();
    await until(() => removedFiles().every((file) => file.includes('/opening/')));
    const before = removedFiles().length;
    t.ok(before > 0, 'a process that has begun to open one may still use its lock');
    closeRemovedLocks(begun);
    closeRemovedLocks(begun + 59_000);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(removedFiles().length, before);
    await until(() => {
      closeRemovedLocks(performance.now() + 61_000);
      return removedFiles().length === 0;
    });
    await rotate();
    t.equal((await (await opened(t, path)).range('p/0')).length, 1);
    await Promise.all([rotator.log.close(), rotator.root.close()]);
  },
);

t.test('a log that is the newest one in the snapshot of another process is not removed', async (t) => {
  const path = t.testdir();
  const store = await opened(t, path);
  await write(store, 0, 3);
  const helper = started(t, 'snapshot-holder', path, 'opening');
  await until(() => helper.lines.includes('held'), 60_000);
  const rotator = await openDatabase(path);
  const snapshots = new Snapshots(rotator);
  await rotateLog(rotator, new StoreView(rotator));
  snapshots.removeReplaced();
  t.same(logs(path), ['log', 'log-1']);
  await killLines(helper);
  await until(() => {
    snapshots.freeDeadReaders();
    snapshots.removeReplaced();
    return logs(path).join() === 'log-1';
  });
  await Promise.all([rotator.log.close(), rotator.root.close()]);
});

t.test(
  'processes that are slow to open the store open it while its log is rotated',
  { skip: withoutStrace(), timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = t.testdir();
    const rotator = started(t, 'log-rotator', path, 'asked');
    const slow = ['-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', '-e', 'trace=openat,mkdir'];
    const delayed = [...slow, '-e', 'inject=openat,mkdir:delay_enter=1000'];
    const openers = [1, 2].map(() =>
      startLines('strace', ...delayed, process.execPath, ...fixtureArgs('store-opener'), path),
    );
    for (const opener of openers) t.teardown(() => killLines(opener));
    const ended = ({ child }: LineProcess): boolean => child.exitCode !== null || child.signalCode !== null;
    let asked = 0;
    const opened = (): number => openers.reduce((sum, { lines }) => sum + lines.length, 0);
    await until(() => {
      // One rotation for each opening: beside more of them, those that are slow would begin again and again.
      for (; asked <= opened(); asked++) rotator.child.stdin?.write('\n');
      return openers.some(ended) || opened() > 100 * CRASH_FACTOR;
    }, CRASH_FACTOR * 120_000);
    const failed = openers.filter(ended).map(({ child }) => child.exitCode ?? child.signalCode);
    for (const running of [...openers, rotator]) await killLines(running);
    t.same(failed, []);
  },
);

t.test(
  'processes that rotate the log are killed beside writers: everything confirmed is there',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = t.testdir();
    const writers = [started(t, 'store-writer', path, 'a'), started(t, 'store-writer', path, 'b', 'checkpoint')];
    await until(() => writers.every(({ lines }) => lines.length > 10), 60_000);
    for (let i = 0; i < ROTATORS * CRASH_FACTOR; i++) {
      const rotator = started(t, 'log-rotator', path);
      const before = writers.map(({ lines }) => lines.length);
      await until(
        () =>
          rotator.lines.length > i % ROTATORS && writers.every(({ lines }, n) => lines.length > (before[n] ?? 0) + 50),
        60_000,
      );
      await killLines(rotator);
    }
    for (const writer of writers) await killLines(writer);
    await requireConfirmed(t, path, writers);
  },
);

t.test(
  'a process that rotates the log goes on while it and others commit to the log that is replaced',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = t.testdir();
    const bounds = JSON.stringify({ rotateBytes: 100 * 1024, rotationCheckMs: 0, checkpointBytes: 256 * 1024 });
    const writers = [
      started(t, 'store-writer', path, 'a', 'maintain', bounds),
      started(t, 'store-writer', path, 'b', '', bounds),
      started(t, 'store-writer', path, 'c', '', bounds),
    ];
    const generation = (): number => Math.max(...logs(path).map((name) => Number(name.slice('log-'.length))));
    await until(() => existsSync(path) && logs(path).length > 0 && generation() > ROTATIONS, CRASH_FACTOR * 90_000);
    const before = writers.map(({ lines }) => lines.length);
    await until(() => writers.every(({ lines }, i) => lines.length > (before[i] ?? 0)), 60_000);
    for (const writer of writers) await killLines(writer);
    await requireConfirmed(t, path, writers);
  },
);
