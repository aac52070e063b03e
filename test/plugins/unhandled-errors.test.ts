import t from 'tap';
import { fileURLToPath } from 'node:url';
import { originOfModule, pluginInStack } from '../../src/plugins/loading/plugin-origin.ts';
import { startPluginCluster } from '../helpers/plugin-cluster.ts';

t.test('an error that a plugin leaves unhandled is logged with its name, and does not end the worker', async (t) => {
  const cluster = await startPluginCluster(t, [
    { use: fileURLToPath(new URL('../fixtures/plugins/careless.mjs', import.meta.url)) },
  ]);
  const threadId = await cluster.thread('first');
  for (const [body, message] of [
    ['reject', 'left unhandled'],
    ['throw', 'thrown by a timer'],
  ]) {
    t.equal((await cluster.call('POST', `/threads/${threadId}/comments`, { userId: 'ann', body })).status, 201);
    await cluster.logged(
      ({ msg, plugin, err }) =>
        msg === 'a plugin left an error unhandled' &&
        plugin === 'careless' &&
        (err as { message: string }).message === message,
    );
  }
  t.equal(
    (await cluster.call('POST', `/threads/${threadId}/comments`, { userId: 'ann', body: 'after that' })).status,
    201,
  );
  t.equal(
    cluster.log().some(({ msg }) => /is replaced/.test(String(msg))),
    false,
  );
});

t.test('an error belongs to the plugin whose folder or package is in its stack', (t) => {
  const origins = [
    originOfModule('lone', 'file:///srv/plugins/lone.mjs'),
    originOfModule('packed', 'file:///srv/node_modules/@acme/packed/dist/index.js'),
    originOfModule('beside', new URL('../../beside.mjs', import.meta.url).href),
  ];
  t.strictSame(
    origins.slice(0, 2).map(({ url }) => url),
    ['file:///srv/plugins/', 'file:///srv/node_modules/@acme/packed/'],
  );
  const errorAt = (...places: string[]): Error =>
    Object.assign(new Error('x'), {
      stack: ['Error: x', ...places.map((place) => `    at f (${place}:1:2)`)].join('\n'),
    });
  t.equal(pluginInStack(errorAt('node:internal/timers', 'file:///srv/plugins/part.mjs'), origins), 'lone');
  t.equal(pluginInStack(errorAt('/srv/node_modules/@acme/packed/lib/a.js'), origins), 'packed');
  t.equal(pluginInStack(errorAt('/srv/node_modules/collab/dist/bin/worker.cjs'), origins), null);
  t.equal(
    pluginInStack(errorAt(fileURLToPath(new URL('../../src/app.ts', import.meta.url))), origins),
    null,
    'Collab beside a plugin',
  );
  t.equal(pluginInStack('text', origins), null);
  t.end();
});
