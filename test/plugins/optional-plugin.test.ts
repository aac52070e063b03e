import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collab, startCluster } from '../helpers/cluster.ts';

interface Report {
  readonly checks: readonly { name: string; level: string; finding: string; remedy: string | null }[];
}

t.test('a server runs without an optional plugin that cannot be loaded; /readyz and doctor say so', async (t) => {
  const cluster = await startCluster({ workers: 1, config: { plugins: [{ use: './missing.mjs', optional: true }, { use: 'moderation-rules' }] } });
  t.teardown(() => cluster.stop());
  const answer = await fetch(`${cluster.url}/readyz`);
  t.equal(answer.status, 200);
  t.match(await answer.json(), { status: 'ok', missingPlugins: 1 });
  const doctor = async () => {
    const { code, stdout } = await collab('doctor', '--dir', cluster.dir, '--json');
    return { code, checks: (JSON.parse(stdout) as Report).checks.filter(({ name }) => name === 'plugins') };
  };
  t.match(await doctor(), { code: 0, checks: [{ level: 'warn', finding: /missing\.mjs: there is no such module; it is optional/, remedy: /collab plugin check/ }] });

  const file = join(cluster.dir, 'config.json');
  const configure = (plugins: object[]): void => writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), plugins }));
  configure([{ use: './missing.mjs' }]);
  t.match(await doctor(), { code: 1, checks: [{ level: 'fail', finding: /the server does not start without it/ }] });
  configure([{ use: 'moderation-rules' }]);
  t.match(await doctor(), { code: 0, checks: [{ level: 'ok', finding: /moderation-rules/ }] });
});
