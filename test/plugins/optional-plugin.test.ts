import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { collab, startCluster, until } from '../helpers/cluster.ts';

interface Report {
  readonly checks: readonly { name: string; level: string; finding: string; remedy: string | null }[];
}

t.test('a server runs without an optional plugin that cannot be loaded; log, /readyz and doctor say so', async (t) => {
  const cluster = await startCluster({
    workers: 1,
    config: { plugins: [{ use: './missing.mjs', optional: true }, { use: 'moderation-rules' }] },
  });
  t.teardown(() => cluster.kill());
  const answer = await fetch(`${cluster.url}/readyz`);
  t.equal(answer.status, 200);
  t.match(await answer.json(), { status: 'ok', missingPlugins: 1 });
  t.ok(
    cluster
      .log()
      .some(({ level, reason }) => level === 'warn' && /missing\.mjs: there is no such module/.test(String(reason))),
  );
  const doctor = async () => {
    const { code, stdout } = await collab('doctor', '--dir', cluster.dir, '--json');
    return { code, checks: (JSON.parse(stdout) as Report).checks.filter(({ name }) => name === 'plugins') };
  };
  t.match(await doctor(), {
    code: 0,
    checks: [
      {
        level: 'warn',
        finding: /missing\.mjs: there is no such module; it is optional/,
        remedy: /collab plugin check/,
      },
    ],
  });

  const file = join(cluster.dir, 'config.json');
  const configure = (plugins: object[]): void =>
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), plugins }));
  configure([{ use: './missing.mjs' }]);
  t.match(await doctor(), { code: 1, checks: [{ level: 'fail', finding: /the server does not start without it/ }] });
  configure([{ use: 'moderation-rules' }]);
  t.match(await doctor(), { code: 0, checks: [{ level: 'ok', finding: /moderation-rules/ }] });
});

t.test('the log of the server and doctor name environments of a plugin that do not exist', async (t) => {
  const cluster = await startCluster({
    workers: 1,
    config: {
      plugins: [{ use: 'moderation-rules', environments: { default: { enabled: true }, defualt: { enabled: false } } }],
    },
  });
  t.teardown(() => cluster.kill());
  t.match(
    await cluster.logged(({ msg }) => msg === 'the entry of a plugin has options for environments that do not exist'),
    { level: 'warn', plugin: 'moderation-rules', environments: ['defualt'] },
  );
  const { code, stdout } = await collab('doctor', '--dir', cluster.dir, '--json');
  t.equal(code, 0);
  t.match(
    (JSON.parse(stdout) as Report).checks.filter(({ name, level }) => name === 'plugins' && level === 'warn'),
    [
      {
        finding: 'the entry of moderation-rules has options for environments that do not exist: defualt',
        remedy: /collab env list/,
      },
    ],
  );
});

t.test(
  'of two plugins with one name, the server runs without the optional one, wherever it stands; plugin check and doctor name it',
  async (t) => {
    const good = fileURLToPath(new URL('../fixtures/plugins/good.mjs', import.meta.url));
    const cluster = await startCluster({
      workers: 1,
      config: {
        plugins: [
          { use: good, optional: true, config: { word: 'first' } },
          { use: good, config: { word: 'second' } },
        ],
      },
    });
    t.teardown(() => cluster.kill());
    t.match(await (await fetch(`${cluster.url}/readyz`)).json(), { status: 'ok', missingPlugins: 1 });
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
    const reasons = cluster
      .log()
      .filter(({ reason }) => /another entry of plugins has a plugin that is named good too/.test(String(reason)));
    t.match(
      reasons.map(({ level }) => level),
      ['warn', 'warn'],
      'a line of the web worker, and one of the background worker',
    );

    t.match(await collab('plugin', 'check', '--dir', cluster.dir), {
      code: 2,
      stdout:
        /^plugin \S+good\.mjs: another entry of plugins has a plugin that is named good too; remove one of the two\ngood 1\.2\.3: ok/,
    });
    const { code, stdout } = await collab('doctor', '--dir', cluster.dir, '--json');
    t.equal(code, 0);
    const [found, ...others] = (JSON.parse(stdout) as Report).checks.filter(({ name }) => name === 'plugins');
    t.match(found, {
      level: 'warn',
      finding: /named good too; remove one of the two; it is optional, so the server runs without it$/,
    });
    t.strictSame(others, []);
  },
);

t.test('an optional plugin whose setup never ends is left out by every process; it blocks none of them', async (t) => {
  const use = fileURLToPath(new URL('../fixtures/plugins/endless-setup.mjs', import.meta.url));
  const cluster = await startCluster({
    workers: 2,
    config: { workerTimeoutSeconds: 2, plugins: [{ use, optional: true }, { use: 'moderation-rules' }] },
  });
  t.teardown(() => cluster.kill());
  t.match(await (await fetch(`${cluster.url}/readyz`)).json(), { status: 'ok', missingPlugins: 1 });
  const lines = cluster.log().filter(({ plugin }) => String(plugin).endsWith('endless-setup.mjs'));
  t.match(
    lines,
    Array.from({ length: 3 }, () => ({ level: 'warn', reason: /endless-setup\.mjs: did not load within 30 s/ })),
    'one line of each worker',
  );
  t.notOk(cluster.log().some(({ hung }) => hung !== undefined));
});
