import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { initFolder, startCluster, until } from '../helpers/cluster.ts';

t.test(
  'a server without a background worker that can start serves, and /readyz says so until there is one',
  async (t) => {
    const folder = await initFolder();
    const [program, flag] = [join(folder.dir, 'fault.cjs'), join(folder.dir, 'fault')];
    writeFileSync(
      program,
      `if (process.env.COLLAB_ROLE === 'background' && require('fs').existsSync(${JSON.stringify(flag)}))
      process.kill(process.pid, 'SIGKILL');`,
    );
    writeFileSync(flag, '');
    const server = await startCluster({ workers: 1, folder, env: { NODE_OPTIONS: `--require ${program}` } });
    t.teardown(async () => {
      await server.kill();
      rmSync(folder.dir, { recursive: true });
    });
    const answer = await fetch(`${server.url}/readyz`);
    t.equal(answer.status, 200);
    t.match(await answer.json(), { status: 'ok', background: 'failing' });
    const put = await fetch(`${server.url}/api/v1/users/ann`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${server.keys.secretKey}`, 'Content-Type': 'application/json' },
      body: '{"name":"Ann"}',
    });
    t.equal(put.status, 200);
    rmSync(flag);
    await until(async () => !(await (await fetch(`${server.url}/readyz`)).text()).includes('background'));
    t.equal(server.pids('background').length, 1);
  },
);
