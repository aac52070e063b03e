import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { openContext } from '../../src/app.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { shutDown } from '../../src/cluster/shutdown.ts';
import { Relay } from '../../src/cluster/relay.ts';
import { runWebWorker } from '../../src/workers/web-worker.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { signUserToken } from '../../src/domain/access/tokens.ts';
import { createLogger } from '../../src/observability/log.ts';
import { isEvent, TestSocket } from '../helpers/socket.ts';

/**
 * A cluster of two web workers in this process. Each opens the store separately; announcements pass through the relay.
 */
async function twoWorkers(t: Test) {
  const dir = t.testdir();
  const config = {
    ...loadConfig({ dir, env: {}, flags: { dataDir: join(dir, 'data'), 'rateLimit.exempt': '127.0.0.1' } }),
    shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
  };
  const log = createLogger({ level: 'silent', name: 'test' });
  const relay = new Relay();
  const workers = [];
  for (const owner of ['web-1', 'web-2']) {
    const { ctx, close } = await openContext(config);
    const [primary, channel] = channelPair();
    relay.add(primary);
    const worker = await runWebWorker({ config, ctx, bus: ipcBus(channel), log, owner, port: 0 });
    let ended: Promise<void> | null = null;
    const end = (): Promise<void> =>
      (ended ??= shutDown([...worker.drain('stop'), { name: 'close', withinMs: 5_000, run: close }], log));
    t.teardown(end);
    workers.push({ ctx, end, url: `http://127.0.0.1:${worker.ready.port}/api/v1` });
  }
  const [one, two] = workers;
  if (one === undefined || two === undefined) throw new Error('two workers were asked for');
  const environment = await createEnvironment(one.ctx, { slug: 'default' });
  const { value: secret } = await createKey(one.ctx, environment, { kind: 'secret' });
  const { value: publishable } = await createKey(one.ctx, environment, { kind: 'publishable' });
  await addSigningKey(one.ctx, environment, { kind: 'secret' });
  const { token } = await signUserToken(one.ctx, environment, { userId: 'ann', ttlSeconds: 3_600 });
  const post = async (url: string, body: object): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const join_ = async (url: string): Promise<TestSocket> => {
    const socket = new TestSocket(`${url.replace('http', 'ws')}/ws`, {
      headers: { 'X-Service-Key': publishable, 'X-Service-Token': token },
    });
    await socket.frame('welcome');
    return socket;
  };
  return { one, two, post, join: join_ };
}

t.test('writes on both workers reach the sockets of both, in order, once', async (t) => {
  const { one, two, post, join } = await twoWorkers(t);
  const sockets = await Promise.all([one, two, one, two].map(({ url }) => join(url)));
  const created = await post(`${one.url}/rooms/lobby/threads`, { userId: 'ann', body: 'first' });
  t.equal(created.status, 201);
  const { thread } = (await created.json()) as { thread: { id: string } };
  const writes = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      post(`${(i % 2 === 0 ? one : two).url}/threads/${thread.id}/comments`, { userId: 'ann', body: `comment ${i}` }),
    ),
  );
  t.same(new Set(writes.map(({ status }) => status)), new Set([201]));
  for (const socket of sockets) {
    const events = await socket.until(() => {
      const found = socket.frames.filter((frame) => isEvent(frame) && frame.type !== 'user.updated');
      return found.length >= 61 && found;
    }, '61 events');
    t.equal(events.length, 61);
    const seqs = socket.seqs;
    t.same(
      seqs,
      Array.from(seqs, (_, i) => (seqs[0] ?? 0) + i),
      'no gap, no double, in order',
    );
  }
  await Promise.all(sockets.map((socket) => socket.close()));
});

t.test('a draining worker asks its sockets to reconnect, and stops answering', async (t) => {
  const { one, two, join } = await twoWorkers(t);
  const [ours, others] = await Promise.all([join(one.url), join(two.url)]);
  await one.end();
  t.match(await ours.closed, { code: 1012 });
  await t.rejects(fetch(`${one.url}/openapi.json`));
  t.equal((await fetch(`${two.url}/openapi.json`)).status, 200, 'the other serves on');
  await others.close();
});
