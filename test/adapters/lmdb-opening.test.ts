import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { killLines, type LineProcess, startFixture, startLines } from '../helpers/line-process.ts';
import { withoutStrace } from '../helpers/unflushed.ts';

/** Kills a process at the end of the test if it still runs. */
function endWith(t: Test, helper: LineProcess): LineProcess {
  t.teardown(() => killLines(helper));
  return helper;
}

/** Starts a process and resolves once it holds the lock of an environment. */
async function holder(t: Test, path: string, mode: 'exclusive' | 'shared' | 'committed'): Promise<LineProcess> {
  const helper = endWith(t, startFixture('opening-holder', path, mode));
  await until(() => helper.lines.includes('held'));
  return helper;
}

function write(store: LmdbStore): Promise<void> {
  return store.transact(async (tx) => tx.put('p', 'k', '"v"'));
}

/** Event loop iterations, many more than a commit takes. */
async function iterations(count = 2_000): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

for (const end of ['has finished', 'is killed'] as const) {
  for (const [name, folder, commit] of [
    ['a commit', 'log', write],
    ['a checkpoint', '', (store: LmdbStore) => store.checkpoint()],
  ] as const) {
    t.test(`${name} waits while another process opens the store, until that one ${end}`, async (t) => {
      const path = t.testdir();
      const store = await openLmdbStore({ path, minFreeBytes: 0 });
      t.teardown(() => store.close());
      await write(store);
      const opening = await holder(t, join(path, folder), 'exclusive');
      let done = false;
      const pending = commit(store).then(() => (done = true));
      await iterations();
      t.notOk(done, 'it has not finished while the environment was being opened');
      t.equal(await store.get('p', 'k'), '"v"', 'reads go on meanwhile');
      if (end === 'has finished') opening.child.stdin?.end();
      else await killLines(opening);
      await pending;
      t.ok(existsSync(join(path, folder, 'opening', 'idle')), 'the file name says that no process opens it');
    });
  }

  t.test(`opening waits while another process commits, until that one ${end}`, async (t) => {
    const path = t.testdir();
    await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
    for (const folder of ['log', '']) {
      const committing = await holder(t, join(path, folder), 'shared');
      const opening = endWith(t, startFixture('opening-holder', join(path, folder), 'exclusive'));
      await until(() => existsSync(join(path, folder, 'opening', 'busy')));
      await iterations();
      t.strictSame(opening.lines, [], 'it has not been opened during the commit');
      if (end === 'has finished') committing.child.stdin?.end();
      else await killLines(committing);
      await until(() => opening.lines.includes('held'));
      opening.child.stdin?.end();
      await until(() => opening.lines.includes('freed'));
    }
  });
}

t.test('opening does not wait for a process that has committed and then blocks its thread', async (t) => {
  const path = t.testdir();
  await (await openLmdbStore({ path, minFreeBytes: 0 })).close();
  await holder(t, join(path, 'log'), 'committed');
  const opening = await holder(t, join(path, 'log'), 'exclusive');
  opening.child.stdin?.end();
  await until(() => opening.lines.includes('freed'));
});

// The last process that closes an environment destroys the mutexes of LMDB in its lock file.
t.test(
  'processes open, write to and close an environment again and again without harm to each other',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = t.testdir();
    const openers = Array.from({ length: 4 }, () =>
      endWith(t, startFixture('environment-opener', path, String(40 * CRASH_FACTOR))),
    );
    await until(
      () => openers.every(({ child }) => child.exitCode !== null || child.signalCode !== null),
      CRASH_FACTOR * 120_000,
    );
    t.same(
      openers.map(({ lines }) => lines),
      [['done'], ['done'], ['done'], ['done']],
    );
  },
);

t.test('a process that opens the store while it has a pending commit does not wait for itself', async (t) => {
  const path = t.testdir();
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  const pending = Promise.all(Array.from({ length: 50 }, () => write(store)));
  const peer = await openLmdbStore({ path, minFreeBytes: 0 });
  await pending;
  t.equal(await peer.get('p', 'k'), '"v"');
  await Promise.all([store.close(), peer.close()]);
});

// LMDB reads the number of the last transaction, maps the file, and publishes the number to all processes.
t.test(
  'processes that are delayed while they open the store undo no commit',
  { skip: withoutStrace(), timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const path = t.testdir();
    const writer = endWith(t, startFixture('store-writer', path, 'w'));
    await until(() => writer.lines.length > 50);
    for (let i = 0; i < 2 * CRASH_FACTOR; i++) {
      const files = ['data.mdb', 'log/data.mdb'].flatMap((file) => ['-P', join(path, file)]);
      const slow = [
        '-f',
        '--seccomp-bpf',
        '-qq',
        '-o',
        '/dev/null',
        ...files,
        '-e',
        'trace=mmap',
        '-e',
        'inject=mmap:delay_enter=20000',
      ];
      const late = endWith(
        t,
        startLines('strace', ...slow, process.execPath, ...fixtureArgs('store-writer'), path, `late${i}`),
      );
      await until(() => late.lines.length > 50 || writer.child.exitCode !== null || writer.child.signalCode !== null);
      await killLines(late);
    }
    const before = writer.lines.length;
    await until(() => writer.lines.length > before + 50);
    await killLines(writer);
    const store = await openLmdbStore({ path, minFreeBytes: 0 });
    t.teardown(() => store.close());
    const found = new Set<string>();
    for (let i = 0; i < 7; i++) for (const { key } of await store.range(`p/${i}`)) found.add(key);
    t.same(
      writer.lines.filter((id) => !found.has(id)),
      [],
      `all ${writer.lines.length} confirmed writes are there`,
    );
  },
);
