import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { logBytes } from '../../src/adapters/lmdb/engine/log-rotation.ts';
import { type Database, openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { otherReaders, type ReaderSlot } from '../../src/adapters/lmdb/env/readers.ts';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { usersOf } from '../../src/domain/records/partitions.ts';
import { processInfo } from '../../src/lib/process/process-info.ts';
import { type Cluster, COLLAB, initFolder, startCluster, until } from '../helpers/cluster.ts';

const MB = 1024 * 1024;
/** Comments written after the exports were killed. */
const COMMENTS = 300;

/** Enough users that an export reads for a while. */
async function addUsers(path: string, environmentId: string): Promise<void> {
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  await store.transact(async (tx) => {
    for (let i = 0; i < 3_000; i++)
      tx.put(usersOf(environmentId), `u${i}`, JSON.stringify({ id: `u${i}`, name: 'x'.repeat(500) }));
  });
  await store.close();
}

/** Writes comments one after the other until it is stopped. */
class Load {
  /** Comments written so far. */
  written = 0;
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(cluster: Cluster) {
    this.#done = this.#run(cluster);
    // Handled by `stop`.
    this.#done.catch(() => {});
  }

  /** Rejects if a comment could not be written. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #run({ url, keys }: Cluster): Promise<void> {
    const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
    const post = async (path: string, body: object): Promise<unknown> => {
      const answer = await fetch(`${url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
      return answer.json();
    };
    const { thread } = (await post('/rooms/a/threads', { userId: 'u0', body: 'first' })) as { thread: { id: string } };
    for (; !this.#stopped; this.written++)
      await post(`/threads/${thread.id}/comments`, { userId: 'u0', body: `${this.written}` });
  }
}

const slotsOf = ({ log, root }: Database, pid: number): ReaderSlot[] =>
  [...otherReaders(log), ...otherReaders(root)].filter((slot) => slot.pid === pid);
const holdsSnapshot = (database: Database, pid: number): boolean =>
  slotsOf(database, pid).some(({ snapshot }) => snapshot !== null);

/** Starts exports until one is stopped (SIGSTOP) while it holds a snapshot of the store. */
async function stoppedExport(t: Test, dir: string, database: Database): Promise<ChildProcess> {
  for (let tries = 1; tries <= 20; tries++) {
    const child = spawn(process.execPath, [COLLAB, 'export', '-', '--dir', dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const { pid = 0, stdout } = child;
    // Once it writes, it also handles signals.
    await once(stdout, 'data');
    while (child.exitCode === null) {
      child.kill('SIGSTOP');
      await until(() => processInfo(pid).stopped || child.exitCode !== null);
      if (holdsSnapshot(database, pid)) return child;
      child.kill('SIGCONT');
      await new Promise(setImmediate);
    }
  }
  throw new Error('no export could be stopped while it held a snapshot');
}

/** How an export ended by a signal. One that was stopped at its end has finished with 0: then another one is ended. */
async function endedExport(
  t: Test,
  dir: string,
  database: Database,
  signal: NodeJS.Signals,
): Promise<{ pid: number; ended: unknown[] }> {
  for (let tries = 1; ; tries++) {
    const child = await stoppedExport(t, dir, database);
    const exited = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT');
    const ended = await exited;
    if (ended[0] !== 0 || tries === 5) return { pid: child.pid ?? 0, ended };
  }
}

t.test(
  'when exports are killed by SIGKILL and SIGINT beside a busy server, their reader slots are freed and the log does not grow',
  async (t) => {
    const { dir, keys } = await initFolder({ rateLimit: { perMinute: 1_000_000 } });
    const path = join(dir, 'data', 'store');
    await addUsers(path, keys.environment.id);
    const cluster = await startCluster({ workers: 1, folder: { dir, keys } });
    t.teardown(() => cluster.kill());
    const database = await openDatabase(path);
    t.teardown(() => Promise.all([database.log.close(), database.root.close()]));
    const load = new Load(cluster);

    for (const [signal, end] of [
      ['SIGKILL', [null, 'SIGKILL']],
      ['SIGINT', [130, null]],
    ] as const) {
      const { pid, ended } = await endedExport(t, dir, database, signal);
      t.strictSame(ended, end, `the exit code and signal after ${signal}`);
      await until(() => slotsOf(database, pid).length === 0);
      t.pass(`after ${signal} its reader slots are free`);
    }

    const before = { bytes: logBytes(database), written: load.written };
    await until(() => load.written >= before.written + COMMENTS);
    await load.stop();
    const grown = logBytes(database) - before.bytes;
    // While a process holds a snapshot of it, it grows by 7 MB.
    t.ok(grown < 4 * MB, `${COMMENTS} comments have made the log grow by ${grown} bytes`);
  },
);
