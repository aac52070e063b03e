import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

t.test('a plugin filters, acts and serves in a cluster', async (t) => {
  const cluster = await startCluster({
    workers: 1,
    config: { rateLimit: { perMinute: 1_000_000 }, plugins: [{ use: fixture('good') }] },
  });
  t.teardown(() => cluster.kill());
  const { url, keys } = cluster;
  const call = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; body: Record<string, unknown>; code: string | null }> => {
    const headers = { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown>,
      code: answer.headers.get('x-error-code'),
    };
  };
  await call('PUT', '/users/ann', { name: 'Ann' });
  const created = await call('POST', '/rooms/r/threads', { userId: 'ann', body: 'banned words are fine in a thread' });
  const { id } = created.body['thread'] as { id: string };
  const comment = (body: string) => call('POST', `/threads/${id}/comments`, { userId: 'ann', body });
  t.match(await comment('a banned word'), {
    status: 403,
    code: 'content_rejected',
    body: { error: 'Please do not write banned' },
  });
  t.match(await comment('hold me'), { status: 201, body: { comment: { status: 'held' } } });
  t.match(await comment('shout'), { status: 201, body: { comment: { body: 'SHOUT' } } });
  t.match(
    await comment('sets userId'),
    { status: 201, body: { comment: { userId: 'ann', body: 'sets userId' } } },
    'a patch of a field that must not change is a failure, and the filter is open',
  );
  t.match(await comment('huge'), { status: 201, body: { comment: { body: 'huge' } } });
  await until(async () => (await call('GET', '/plugins/good/default/seen')).body.length === 3, 60_000);
  t.strictSame(
    new Set((await call('GET', '/plugins/good/default/seen')).body as unknown as string[]),
    new Set(['SHOUT', 'sets userId', 'huge']),
  );
});

t.test('a plugin of one file, with no package around it, runs in every process of the server', async (t) => {
  const folder = await initFolder({ plugins: [{ use: './alone.mjs' }] });
  const hooks =
    "host.filter('comment.create', () => reject('no')); host.action('thread.created', (_, { environment }) => host.kv(environment).put('seen', 1)); host.route({ method: 'GET', path: 'seen', credential: 'public' }, async (_, { environment }) => ({ status: 200, body: JSON.stringify((await host.kv(environment).get('seen')) ?? 0) }));";
  writeFileSync(
    join(folder.dir, 'alone.mjs'),
    `import { definePlugin, reject } from 'collab/plugin';
export default definePlugin({ name: 'alone', version: '1.0.0', apiVersion: 1, config: { type: 'object', properties: {} }, setup(host) { ${hooks} } });`,
  );
  const { call, thread } = await startPluginCluster(t, folder);
  const id = await thread('Hello');
  t.match(await call('POST', `/threads/${id}/comments`, { userId: 'ann', body: 'Hi' }), {
    status: 403,
    body: { error: 'no' },
  });
  await until(async () => String((await call('GET', '/plugins/alone/default/seen')).body) === '1');
});
