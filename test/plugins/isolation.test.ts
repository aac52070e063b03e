import { fileURLToPath } from 'node:url';
import t from 'tap';
import { initFolder, stablePort, until } from '../helpers/cluster.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';

const use = fileURLToPath(new URL('../fixtures/plugins/isolated.mjs', import.meta.url));

t.test(
  'a filter in a thread of its own may loop, leak and exit: other requests go on, its deadline holds, and it starts again',
  async (t) => {
    const port = await stablePort();
    const folder = await initFolder({
      rateLimit: { perMinute: 1_000_000 },
      metrics: { port },
      plugins: [{ use, isolation: 'worker' }],
    });
    const cluster = await startPluginCluster(t, folder);
    const { call, thread } = cluster;
    const web = cluster.pids('web');
    const id = await thread('Hello');
    const comment = () => call('POST', `/threads/${id}/comments`, { userId: 'ann', body: 'Hi' });
    const open = (body: string) => call('POST', '/rooms/home/threads', { userId: 'ann', body });
    const ends = (): unknown[] =>
      cluster
        .log()
        .filter(({ plugin, msg }) => plugin === 'isolated' && /thread of a plugin was ended/.test(String(msg)))
        .map(({ reason }) => reason);
    const refused = { status: 403, body: { error: /could not be checked/ } };

    const first = await comment();
    t.match(first, { status: 201, body: { comment: { body: 'Hi, main thread: false' } } });
    const { id: commentId } = first.body['comment'] as { id: string };

    const looping = call('PATCH', `/comments/${commentId}`, { userId: 'ann', body: 'loop' });
    for (let n = 0; n < 20; n++)
      t.equal((await call('PUT', `/users/user-${n}`, { name: 'User' })).status, 200, 'another request');
    t.match(await looping, refused, 'a loop');
    await until(() => ends().length === 1);
    t.match(await open('leak'), refused, 'a leak');
    await until(() => ends().length === 2);
    t.match(await open('exit'), refused, 'an exit');
    await until(() => ends().length === 3);
    t.match(await open('exit'), refused, 'the thread was started again');
    await until(() => ends().length === 4);
    t.match(
      ends(),
      ['deadline', /^(?:memory|deadline)$/, 'ended', 'ended'],
      'on a busy machine the deadline can come before the end of the memory',
    );

    t.match(
      await comment(),
      refused,
      'the thread starts again after a second, which is later than the deadline of this filter',
    );
    await cluster.logged(({ hook, reason }) => hook === 'comment.create' && reason === 'did not end within 900 ms');
    t.equal((await open('fine')).status, 201, 'a filter with a later deadline waits for the start');
    t.match(await comment(), { status: 201, body: { comment: { body: 'Hi, main thread: false' } } });
    t.strictSame(cluster.pids('web'), web, 'the web worker has run all the time');

    const restarts = async (): Promise<Record<string, number>> => {
      const families = parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
      return Object.fromEntries(
        (families.get('collab_plugin_restarts_total')?.samples ?? []).map(({ labels, value }) => [
          labels['reason'],
          value,
        ]),
      );
    };
    await until(async () => Object.values(await restarts()).reduce((sum, value) => sum + value, 0) === 4);
    t.match(await restarts(), { ended: 2 });
  },
);
