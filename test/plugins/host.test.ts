import t from 'tap';
import { fileURLToPath } from 'node:url';
import { startCluster, until } from '../helpers/cluster.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

t.test('a plugin filters, acts and serves in a cluster', async (t) => {
  const cluster = await startCluster({ workers: 1, config: { rateLimit: { perMinute: 1_000_000 }, plugins: [{ use: fixture('good') }] } });
  t.teardown(() => cluster.stop());
  const { url, keys } = cluster;
  const call = async (method: string, path: string, body?: object): Promise<{ status: number; body: Record<string, unknown>; code: string | null }> => {
    const headers = { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown>, code: answer.headers.get('x-error-code') };
  };
  await call('PUT', '/users/ann', { name: 'Ann' });
  const created = await call('POST', '/rooms/r/threads', { userId: 'ann', body: 'banned words are fine in a thread' });
  const { id } = created.body['thread'] as { id: string };
  const comment = (body: string) => call('POST', `/threads/${id}/comments`, { userId: 'ann', body });
  t.match(await comment('a banned word'), { status: 403, code: 'content_rejected', body: { error: 'Please do not write banned' } });
  t.match(await comment('hold me'), { status: 201, body: { comment: { status: 'held' } } });
  t.match(await comment('shout'), { status: 201, body: { comment: { body: 'SHOUT' } } });
  t.match(await comment('sets userId'), { status: 201, body: { comment: { userId: 'ann', body: 'sets userId' } } }, 'a patch of a field that must not change is a failure, and the filter is open');
  t.match(await comment('huge'), { status: 201, body: { comment: { body: 'huge' } } });
  await until(async () => (await call('GET', '/plugins/good/default/seen')).body.length === 3, 60_000);
  t.strictSame(new Set((await call('GET', '/plugins/good/default/seen')).body as unknown as string[]), new Set(['SHOUT', 'sets userId', 'huge']));
});
