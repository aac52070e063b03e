import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { initFolder, stablePort, until } from '../helpers/cluster.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';

const use = fileURLToPath(new URL('../fixtures/plugins/thoughtless.mjs', import.meta.url));

const port = await stablePort();
const folder = await initFolder({
  rateLimit: { perMinute: 1_000_000 },
  metrics: { port },
  workerTimeoutSeconds: 2,
  plugins: [{ use }],
});
t.teardown(() => rmSync(folder.dir, { recursive: true, force: true }));
const cluster = await startPluginCluster(t, folder);
const threadId = await cluster.thread('first');

/** Calls a route of the plugin. */
async function route(path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${cluster.url}/api/v1/plugins/thoughtless/default/${path}`, {
    headers: { authorization: `Bearer ${cluster.keys.secretKey}` },
  });
  return { status: answer.status, text: await answer.text() };
}

t.test('a hook that blocks its web worker is named by the log and the metrics when the worker is killed', async (t) => {
  const comment = (body: string) => cluster.call('POST', `/threads/${threadId}/comments`, { userId: 'ann', body });
  const loops: readonly [start: () => Promise<unknown>, hook: string][] = [
    [() => comment('loop'), 'comment.create'],
    [() => comment('loop later'), 'comment.create'],
    [() => route('loop'), 'GET loop'],
  ];
  const kills = (): Record<string, unknown>[] => cluster.log().filter(({ hung }) => hung !== undefined);
  for (const [at, [start, hook]] of loops.entries()) {
    await t.rejects(start(), 'the killed worker does not answer');
    await until(() => kills().length === at + 1);
    t.match(kills()[at], {
      plugin: 'thoughtless',
      hook,
      msg: `its event loop was blocked while ${hook} of the plugin thoughtless ran (with "isolation": "worker", a plugin cannot block it); a new worker replaces it`,
    });
    await until(async () => (await comment('Hello').catch(() => ({ status: 0 }))).status === 201);
  }
  const errors =
    parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).get(
      'collab_plugin_hook_errors_total',
    )?.samples ?? [];
  t.strictSame(
    errors
      .map(({ labels, value }) => ({ hook: labels['hook'], plugin: labels['plugin'], value }))
      .toSorted((a, b) => a.value - b.value)
      .filter(({ value }) => value > 0),
    [
      { hook: 'GET loop', plugin: 'thoughtless', value: 1 },
      { hook: 'comment.create', plugin: 'thoughtless', value: 2 },
    ],
  );
});

t.test('hooks in a web worker that throw values that are no errors fail like others, and are named', async (t) => {
  for (const [body, reason] of [
    ['throw null', 'null'],
    ['throw an object without a text', 'a value without a text was thrown'],
  ]) {
    t.match(await cluster.call('POST', `/threads/${threadId}/comments`, { userId: 'ann', body }), {
      status: 403,
      body: { error: 'The content could not be checked. Try again later' },
    });
    t.match(
      await cluster.logged((line) => line['msg'] === 'a filter of a plugin failed' && line['reason'] === reason),
      { plugin: 'thoughtless', hook: 'comment.create' },
    );
  }
  t.match(await route('nothing'), { status: 500, text: /The plugin thoughtless failed/ });
  t.match(await cluster.logged(({ msg }) => msg === 'a route of a plugin failed'), { plugin: 'thoughtless' });
});
