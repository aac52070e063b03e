import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { startCluster, until } from '../helpers/cluster.ts';
import { collab } from '../helpers/command.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/plugins/${name}.mjs`, import.meta.url));

t.test(
  'a plugin that only the background worker cannot load is counted in /readyz, also by web workers that start later, and doctor warns of it',
  async (t) => {
    const loads = tempFolder(t);
    const cluster = await startCluster({
      workers: 2,
      env: { LOADS_FOLDER: loads },
      config: { plugins: [{ use: fixture('one-thread') }, { use: './nowhere.mjs', optional: true }] },
    });
    t.teardown(() => cluster.kill());
    await cluster.logged(
      ({ level, plugin, msg }) =>
        level === 'error' &&
        plugin === fixture('one-thread') &&
        /its actions and jobs do not run until the next start/.test(String(msg)),
    );
    const counted = async (): Promise<boolean> => {
      // Several connections, because either web worker may answer.
      const answers = await Promise.all(
        Array.from({ length: 8 }, async () =>
          (await fetch(`${cluster.url}/readyz`, { headers: { connection: 'close' } })).json(),
        ),
      );
      return answers.every(
        (answer) =>
          JSON.stringify(answer).includes('"status":"ok"') && JSON.stringify(answer).includes('"missingPlugins":2'),
      );
    };
    await until(counted);
    const before = cluster.pids('web');
    cluster.signal('SIGHUP');
    await until(
      () =>
        Promise.resolve(cluster.pids('web').length === 2 && cluster.pids('web').every((pid) => !before.includes(pid))),
      180_000,
    );
    await until(counted);
    // Nothing in this process has opened the store of the server.
    const status = (...options: string[]): ReturnType<typeof collab> =>
      collab(['status', '--dir', cluster.dir, ...options], { inside: true });
    t.match(JSON.parse((await status('--json')).stdout), {
      ready: true,
      missingPlugins: 2,
    });
    t.match((await status()).stdout, 'Warning: the server runs without 2 of the plugins of the configuration. Run');
    rmSync(join(loads, 'loaded'));
    const { code, stdout } = await collab(['doctor', '--dir', cluster.dir, '--json'], { env: { LOADS_FOLDER: loads } });
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; level: string; finding: string; remedy: string | null }[];
    };
    t.equal(code, 0, 'here it can be loaded');
    t.match(
      checks.find(({ name }) => name === 'ready'),
      {
        level: 'warn',
        finding: 'the server accepts reads and writes, but runs without 2 plugins of the configuration',
        remedy: /could not be loaded/,
      },
    );
  },
);
