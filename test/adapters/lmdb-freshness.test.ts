import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { newServer } from '../helpers/core.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';

const ROUNDS = 60 * CRASH_FACTOR;

async function open(t: Test, path: string): Promise<LmdbStore> {
  const store = await openLmdbStore({ path, minFreeBytes: 0 });
  t.teardown(() => store.close());
  return store;
}

async function startEcho(t: Test, path: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [...fixtureArgs('store-echo'), path], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
  return child;
}

/**
 * Lets another process write `ROUNDS` times, and reads each write in the callback in which its confirmation arrives.
 * Returns the stale reads.
 */
async function readAnswers(t: Test, child: ChildProcess, store: LmdbStore): Promise<string[]> {
  const stale: string[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const answered = once(child.stdout as NonNullable<typeof child.stdout>, 'data');
    child.stdin?.write(`${round}\n`);
    const [answer] = (await answered) as [Buffer];
    const confirmed = answer.toString().trim();
    const read = await store.get('p', 'k');
    if (read !== confirmed) stale.push(`${read} after ${confirmed}`);
  }
  t.pass(`${ROUNDS} rounds`);
  return stale;
}

t.test('a write that another process has confirmed is read, whatever this process reads in between', async (t) => {
  const readers: Record<string, (again: () => void) => unknown> = {
    'in the check phase': (again) => setImmediate(again),
    'in the timer phase': (again) => setTimeout(again, 1),
  };
  for (const [phase, schedule] of Object.entries(readers)) {
    await t.test(phase, async (t) => {
      const path = t.testdir();
      const store = await open(t, path);
      const child = await startEcho(t, path);
      let going = true;
      const read = (): void => {
        if (!going) return;
        void store.get('p', 'k');
        schedule(read);
      };
      read();
      t.strictSame(await readAnswers(t, child, store), []);
      going = false;
    });
  }
});

for (const announced of [false, true])
  t.test(
    `of two requests in one event loop iteration, the second sees what was committed after the first had read${announced ? ', where input is announced' : ''}`,
    async (t) => {
      const path = t.testdir();
      const store = await open(t, path);
      const onInput = announced ? store.expireOnInput() : () => {};
      await store.transact(async (tx) => tx.put('p', 'k', 'old'));
      const seen: (string | undefined)[] = [];
      const server = newServer();
      server.app.any('/*', (response) => {
        onInput();
        response.onAborted(() => undefined);
        void store.get('p', 'k').then((value) => {
          seen.push(value);
          // Blocks the event loop: the other request waits in the kernel.
          if (seen.length === 1)
            execFileSync(process.execPath, [...fixtureArgs('store-commit'), path, 'p', 'k', 'new']);
          response.end();
        });
      });
      const port = await server.listen('127.0.0.1', 0);
      t.teardown(() => server.close());
      const sockets = await Promise.all([0, 1].map(() => connected(port)));
      t.teardown(() => sockets.forEach((socket) => socket.destroy()));
      const answers = sockets.map((socket) => once(socket, 'data'));
      for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await Promise.all(answers);
      t.strictSame(seen, ['old', 'new']);
    },
  );

t.test('a read that finds a new commit calls the followers', async (t) => {
  const path = t.testdir();
  const [store, peer] = [await open(t, path), await open(t, path)];
  const received: number[] = [];
  store.follow((_, event) => received.push(event?.seq ?? 0));
  await peer.transact(async (tx) => tx.emit('env', (seq) => `{"seq":${seq}}`));
  await store.get('p', 'k');
  t.strictSame(received, [1]);
});

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}
