import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { checkPlugins } from '../../src/plugins/loading/check-plugin.ts';
import { startCluster } from '../helpers/cluster.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

t.test('a start loads a plugin to check it, and then only where its hooks run', async (t) => {
  const folder = tempFolder(t);
  const cluster = await startCluster({
    workers: 1,
    env: { COUNTED_LOADS: folder },
    config: { plugins: [{ use: fixture('counted'), isolation: 'worker' }, { use: 'moderation-rules' }] },
  });
  t.teardown(() => cluster.kill());
  const [web] = cluster.pids('web');
  const loads = readFileSync(join(folder, 'counted-loads'), 'utf8').trim().split('\n');
  t.match(loads[0], /^thread /, 'in the thread that checks it');
  const [check] = loads;
  t.strictSame(
    loads.filter((load) => load !== check),
    [`thread ${web}`],
    'and in its own; not in the web worker beside that, nor in the background worker',
  );
});

t.test('plugins that are checked together each have their own outcome, whatever the others do', async (t) => {
  const entries = [
    { use: fixture('good'), config: { word: 'x' } },
    { use: fixture('exits'), optional: true },
    { use: fixture('no-default'), optional: true },
    { use: 'moderation-rules' },
  ];
  const checked = await checkPlugins(entries, '');
  t.match(checked, [
    { checked: { name: 'good', isolated: false, runsInWebWorkers: true } },
    { loadFailure: /its thread ended while it loaded/ },
    { loadFailure: /no default export/ },
    { checked: { name: 'moderation-rules', runsInWebWorkers: true, runsInBackground: true } },
  ]);
  await t.rejects(checkPlugins([{ use: fixture('good') }, { use: fixture('no-default') }], ''), {
    message: /no default export/,
  });
});
