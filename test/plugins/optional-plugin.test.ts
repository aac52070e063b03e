import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { initFolder, type LogLine, startCluster, until } from '../helpers/cluster.ts';
import { collab as collabApart } from '../helpers/cli.ts';
import { collab } from '../helpers/command.ts';

interface Check {
  readonly level: string;
  readonly finding: string;
  readonly remedy: string | null;
}

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));
const good = fixture('good');
const endless = { use: fixture('endless-setup'), optional: true };
const plugins = [
  { use: './missing.mjs', optional: true },
  { use: good, optional: true, config: { word: 'first' } },
  { use: good, config: { word: 'second' } },
  { use: 'moderation-rules', environments: { default: { enabled: true }, defualt: { enabled: false } } },
];

t.test('a server with optional plugins that cannot be loaded', async (t) => {
  const folder = await initFolder({ workerTimeoutSeconds: 2, plugins: [endless, ...plugins] });
  const cluster = await startCluster({ workers: 1, folder });
  t.teardown(async () => {
    await cluster.kill();
    rmSync(folder.dir, { recursive: true, force: true });
  });
  const warned = (reason: RegExp): LogLine[] =>
    cluster.log().filter((line) => line['level'] === 'warn' && reason.test(String(line['reason'])));
  const configure = (plugins: readonly object[]): void => {
    const file = join(cluster.dir, 'config.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), plugins }));
  };
  const doctor = async (run: () => ReturnType<typeof collab>): Promise<{ code: number | null; checks: Check[] }> => {
    const { code, stdout } = await run();
    const { checks } = JSON.parse(stdout) as { checks: (Check & { name: string })[] };
    return { code, checks: checks.filter(({ name }) => name === 'plugins') };
  };

  await t.test('it runs without them; log and /readyz say so', async (t) => {
    const answer = await fetch(`${cluster.url}/readyz`);
    t.equal(answer.status, 200);
    t.match(await answer.json(), { status: 'ok', missingPlugins: 3 });
    t.not(warned(/missing\.mjs: there is no such module/).length, 0);
  });

  await t.test('a setup that never ends is left out by every process; it blocks none of them', (t) => {
    t.equal(warned(/endless-setup\.mjs: did not load within 30 s/).length, 2, 'one line of each worker');
    t.notOk(cluster.log().some(({ hung }) => hung !== undefined));
    t.end();
  });

  await t.test('its log names environments of a plugin that do not exist', async (t) => {
    t.match(
      await cluster.logged(({ msg }) => msg === 'the entry of a plugin has options for environments that do not exist'),
      { level: 'warn', plugin: 'moderation-rules', environments: ['defualt'] },
    );
  });

  await t.test('of two plugins with one name it runs without the optional one, wherever it stands', async (t) => {
    const headers = { authorization: `Bearer ${cluster.keys.secretKey}`, 'content-type': 'application/json' };
    const post = async (path: string, body: object) =>
      fetch(`${cluster.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    await fetch(`${cluster.url}/api/v1/users/ann`, { method: 'PUT', headers, body: '{}' });
    const { thread } = (await (await post('/rooms/r/threads', { userId: 'ann', body: 'Hello' })).json()) as {
      thread: { id: string };
    };
    t.equal((await post(`/threads/${thread.id}/comments`, { userId: 'ann', body: 'the first word' })).status, 201);
    t.equal((await post(`/threads/${thread.id}/comments`, { userId: 'ann', body: 'the second word' })).status, 403);
    const seen = async () =>
      (await (await fetch(`${cluster.url}/api/v1/plugins/good/default/seen`, { headers })).json()) as unknown[];
    await until(async () => (await seen()).length > 0);
    t.equal(
      warned(/another entry of plugins has a plugin that is named good too/).length,
      2,
      'a line of the web worker, and one of the background worker',
    );
  });

  const asked = ['doctor', '--dir', cluster.dir, '--json'];
  const beside = (): ReturnType<typeof collab> => collabApart(asked);
  const without = (): ReturnType<typeof collab> => collab(asked, { inside: true });

  await t.test('`plugin check` names the plugins, and `doctor` them and the environments', async (t) => {
    configure(plugins);
    t.match(await collab(['plugin', 'check', '--dir', cluster.dir], { inside: true }), {
      code: 2,
      stdout:
        /plugin \S+good\.mjs: another entry of plugins has a plugin that is named good too; remove one of the two\ngood 1\.2\.3: ok/,
    });
    t.match(await doctor(beside), {
      code: 0,
      checks: [
        {
          level: 'warn',
          finding: /missing\.mjs: there is no such module; it is optional/,
          remedy: /collab plugin check/,
        },
        {
          level: 'warn',
          finding: /named good too; remove one of the two; it is optional, so the server runs without it$/,
        },
        {
          level: 'warn',
          finding: 'the entry of moderation-rules has options for environments that do not exist: defualt',
          remedy: /collab env list/,
        },
      ],
    });
  });

  await t.test('`doctor` fails for one that is not optional, and is content once it is gone', async (t) => {
    await cluster.kill();
    configure([{ use: './missing.mjs' }]);
    t.match(await doctor(without), {
      code: 1,
      checks: [{ level: 'fail', finding: /the server does not start without it/ }],
    });
    configure([{ use: 'moderation-rules' }]);
    t.match(await doctor(without), { code: 0, checks: [{ level: 'ok', finding: /moderation-rules/ }] });
  });
});
