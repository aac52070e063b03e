import t from 'tap';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { startCluster, until } from '../helpers/cluster.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';

const good = fileURLToPath(new URL('../fixtures/plugins/good.mjs', import.meta.url));

t.test(
  'every event reaches the receiver at least once while the background worker is killed again and again',
  { timeout: CRASH_FACTOR * 300_000 },
  async (t) => {
    const received = new Map<string, number>();
    const receiver = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        const { id } = JSON.parse(text) as { id: string };
        received.set(id, (received.get(id) ?? 0) + 1);
        response.end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const cluster = await startCluster({
      workers: 1,
      config: {
        rateLimit: { perMinute: 1_000_000 },
        plugins: [{ use: good, allowPrivate: true, config: { receiver: address } }],
      },
    });
    t.teardown(async () => {
      await cluster.kill();
      receiver.close();
    });
    const call = async (method: string, path: string, body: object): Promise<Record<string, unknown>> => {
      const headers = { authorization: `Bearer ${cluster.keys.secretKey}`, 'content-type': 'application/json' };
      return (await (
        await fetch(`${cluster.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
      ).json()) as Record<string, unknown>;
    };
    await call('PUT', '/users/ann', { name: 'Ann' });
    const { id } = (await call('POST', '/rooms/r/threads', { userId: 'ann', body: 'first' }))['thread'] as {
      id: string;
    };
    const KILLS = 3 * CRASH_FACTOR;
    const PER_ROUND = 15;
    for (let round = 0; round < KILLS; round++) {
      for (let n = 0; n < PER_ROUND; n++)
        await call('POST', `/threads/${id}/comments`, { userId: 'ann', body: `comment ${round}.${n}` });
      const [pid] = cluster.pids('background');
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
      await until(() => cluster.pids('background').some((other) => other !== pid));
    }
    await until(() => received.size === KILLS * PER_ROUND, 60_000);
    t.equal(received.size, KILLS * PER_ROUND);
  },
);
