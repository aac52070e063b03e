import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { parentChannel } from '../../src/cluster/channel.ts';
import { WorkerExit } from '../../src/cluster/exit.ts';
import type { Message } from '../../src/cluster/messages.ts';
import { loadConfig } from '../../src/config/load.ts';
import { fixtureProgram } from '../helpers/fixture-program.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** Forks a process that runs as a worker, and sends it `start`. */
function worker(t: Test, work = '', folder = '') {
  const { path, execArgv } = fixtureProgram('worker-role');
  const child = fork(path, [work, folder], { execArgv: [...execArgv], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  t.teardown(() => child.kill('SIGKILL'));
  const channel = parentChannel(child);
  const messages: Message[] = [];
  const texts = { stdout: '', stderr: '' };
  child.stdout?.on('data', (data: Buffer) => (texts.stdout += data.toString()));
  child.stderr?.on('data', (data: Buffer) => (texts.stderr += data.toString()));
  // Not 'close', which is never emitted once the parent has disconnected.
  const said = [child.stdout, child.stderr].map((stream) => new Promise((resolve) => stream?.once('end', resolve)));
  const ended = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => void Promise.all(said).then(() => resolve(code ?? signal))),
  );
  const first = new Promise<Message>((resolve) =>
    channel.onMessage((message) => {
      messages.push(message);
      resolve(message);
    }),
  );
  channel.send({
    type: 'start',
    data: {
      config: loadConfig({ dir: '/nowhere', env: {}, flags: {} }),
      workerId: 'web-9',
      node: 'a',
      owner: 'web-9',
      port: 1,
      startedAt: 0,
    },
  });
  return { child, channel, messages, texts, ended, first };
}

t.test('it serves after `start`, and exits as intended after `drain`', async (t) => {
  const { channel, first, ended, texts } = worker(t);
  t.equal((await first).type, 'ready');
  channel.send({ type: 'drain', data: { reason: 'roll' } });
  t.equal(await ended, WorkerExit.intended);
  t.match(texts.stdout, 'drained: roll');
});

t.test('signals to the whole process group are left to the primary', async (t) => {
  const { child, channel, first, ended } = worker(t);
  await first;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) child.kill(signal);
  channel.send({ type: 'drain', data: { reason: 'stop' } });
  t.equal(await ended, WorkerExit.intended);
});

t.test('it stops at once when the primary is gone', async (t) => {
  const { channel, first, ended, texts } = worker(t);
  await first;
  channel.close();
  t.equal(await ended, 'SIGKILL');
  t.notMatch(texts.stdout, 'drained');
});

for (const work of ['throws later', 'rejects later', 'cannot go on']) {
  t.test(`a worker that ${work} reports the reason in the log and to the primary, and exits`, async (t) => {
    const { ended, messages, texts } = worker(t, work);
    t.equal(await ended, WorkerExit.logged);
    t.match(messages.at(-1), { type: 'failed', data: { reason: /^nobody caught this/ } });
    const line = JSON.parse(texts.stdout.trim()) as Record<string, unknown>;
    t.match(line, {
      level: 'fatal',
      worker: 'web-9',
      err: { message: /^nobody caught this/, stack: /worker-role\.ts/ },
    });
    t.notMatch(texts.stdout, 'sk_default_secret');
  });
}

t.test('a worker that cannot start reports the reason', async (t) => {
  const { ended, messages, texts } = worker(t, 'fails to start');
  t.equal(await ended, WorkerExit.logged);
  t.same(messages, [{ type: 'failed', data: { reason: 'no such disk', exitCode: null } }]);
  t.match(texts.stderr, /no such disk[^]*worker-role\.ts/);
});

t.test('a worker that cannot start still exits when asked to drain', async (t) => {
  const { channel, ended } = worker(t, 'fails to start');
  channel.send({ type: 'drain', data: { reason: 'stop' } });
  const code = await ended;
  t.ok(code === WorkerExit.logged || code === 'SIGKILL', `it ended with ${code}`);
});

t.test('a worker that is stopped while its start writes to the store ends at once', async (t) => {
  for (let i = 0; i < 5; i++) {
    const { channel, child, ended } = worker(t, 'writes while it starts', tempFolder(t));
    await once(child.stdout as Readable, 'data');
    channel.send({ type: 'drain', data: { reason: 'stop' } });
    t.equal(await Promise.race([ended, delay(10_000, 'it still runs after 10 s', { ref: false })]), 'SIGKILL');
  }
});
