import { join } from 'node:path';
import t from 'tap';
import { processInfo } from '../../src/lib/process/process-info.ts';
import { type Cluster, startCluster, until } from '../helpers/cluster.ts';
import { fixtureArgs } from '../helpers/fixture-program.ts';
import { killLines, startFixture, startLines } from '../helpers/line-process.ts';

let server: Cluster;

t.before(async () => {
  server = await startCluster({ config: { workerTimeoutSeconds: 2 } });
});
t.teardown(() => server.kill());

/** The line of the log about a process that kept a lock. */
const killed = (holder: number) =>
  server.logged(({ msg, pid }) => pid === holder && /kept a lock of the store/.test(String(msg)));

for (const folder of ['store', 'store/log']) {
  t.test(
    `a command that is stopped while it opens ${folder} is killed, and the writes that waited for it succeed`,
    async (t) => {
      const holder = startFixture('opening-holder', join(server.dir, 'data', folder), 'exclusive');
      t.teardown(() => killLines(holder));
      await until(() => holder.lines.includes('held'));
      const pid = holder.child.pid ?? 0;
      process.kill(pid, 'SIGSTOP');
      await until(() => processInfo(pid).stopped);
      const headers = { authorization: `Bearer ${server.keys.secretKey}`, 'content-type': 'application/json' };
      const write = await fetch(`${server.url}/api/v1/users/ann`, { method: 'PUT', headers, body: '{"name":"Ann"}' });
      t.equal(write.status, 200);
      t.match(await killed(pid), {
        level: 'error',
        pid,
        lock: join(server.dir, 'data', folder, 'opening', 'lock.mdb'),
      });
      // The line says that it was killed; that it has ended takes a moment more.
      await until(() => processInfo(pid).command === null);
      t.notOk(
        server.log().some(({ hung }) => hung !== undefined),
        'no worker was killed',
      );
    },
  );
}

t.test(
  'a worker of a server that has ended, which is blocked with a lock of the store, is killed, and the writes that waited for it succeed',
  async (t) => {
    const folder = join(server.dir, 'data', 'store', 'log');
    const holder = startLines(
      'env',
      'COLLAB_ROLE=background',
      process.execPath,
      ...fixtureArgs('opening-holder'),
      folder,
      'exclusive',
    );
    t.teardown(() => killLines(holder));
    await until(() => holder.lines.includes('held'));
    const pid = holder.child.pid ?? 0;
    const headers = { authorization: `Bearer ${server.keys.secretKey}`, 'content-type': 'application/json' };
    const write = await fetch(`${server.url}/api/v1/users/ann`, { method: 'PUT', headers, body: '{"name":"Ann"}' });
    t.equal(write.status, 200);
    t.match(await killed(pid), {
      level: 'error',
      pid,
      lock: join(folder, 'opening', 'lock.mdb'),
      msg: /^a worker of a server that has ended/,
    });
    t.notOk(
      server.log().some(({ hung }) => hung !== undefined),
      'no worker was killed',
    );
  },
);
