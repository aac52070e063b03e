import t from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Cluster, startCluster, until } from '../helpers/cluster.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

interface Api {
  (method: string, path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }>;
}

const apiOf =
  ({ url, keys }: Cluster): Api =>
  async (method, path, body) => {
    const headers = { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };

t.test('a plugin that throws, hangs, loops or leaks stops neither requests nor another plugin', async (t) => {
  const once = mkdtempSync(join(tmpdir(), 'collab-once-'));
  const cluster = await startCluster({
    workers: 1,
    config: {
      rateLimit: { perMinute: 1_000_000 },
      plugins: [
        { use: fixture('bad'), config: { once: `${once}/` } },
        { use: fixture('leaking') },
        { use: fixture('good') },
      ],
    },
  });
  t.teardown(async () => {
    await cluster.kill();
    rmSync(once, { recursive: true, force: true });
  });
  const api = apiOf(cluster);
  await api('PUT', '/users/ann', { name: 'Ann' });
  const { id } = (await api('POST', '/rooms/r/threads', { userId: 'ann', body: 'first' })).body['thread'] as {
    id: string;
  };
  // Each in a thread of its own: events of one thread wait for each other's retries.
  const bodies = ['throw', 'hang', 'once throw', 'once loop', 'once hang', 'once exit', 'last'];
  for (const body of bodies) {
    const thread = (await api('POST', '/rooms/r/threads', { userId: 'ann', body: 'first' })).body['thread'] as {
      id: string;
    };
    t.equal((await api('POST', `/threads/${thread.id}/comments`, { userId: 'ann', body })).status, 201, body);
  }
  await until(
    async () => ((await api('GET', '/plugins/good/default/seen')).body as unknown as string[]).length === bodies.length,
    60_000,
  );
  t.pass('the other plugin has handled every event');
  await cluster.logged(({ plugin, reason }) => plugin === 'bad' && reason === 'deadline');
  await cluster.logged(({ plugin, reason }) => plugin === 'leaking' && reason === 'memory');
  t.pass('the thread with the loop was ended, and the one that used up its memory');
  for (let failure = 0; failure < 5; failure++)
    t.equal((await api('POST', `/threads/${id}/comments`, { userId: 'ann', body: 'throw' })).status, 201);
  await cluster.logged(
    ({ plugin, msg }) => plugin === 'bad' && /not called in this environment for 30 s/.test(String(msg)),
  );
  t.equal(
    cluster.log().some(({ msg }) => /skips it/.test(String(msg))),
    false,
    'no event was given up',
  );
  t.ok(
    cluster
      .log()
      .some(({ plugin, msg }) => plugin === 'bad' && /failed to handle an event; it is tried again/.test(String(msg))),
    'a failure of an action names its plugin',
  );
});
