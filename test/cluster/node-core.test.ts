import t from 'tap';
import { type Cluster, isRunning, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { pauseBeside, startLoad } from '../helpers/load.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';

/** The workers that answer requests on new connections, by the prefix of the ids that each gives its requests. */
async function answering(server: Cluster): Promise<string> {
  const { headers } = await fetch(`${server.url}/livez`, { headers: { Connection: 'close' } });
  return headers.get('x-request-id')?.split('-').slice(0, -1).join('-') ?? '';
}

t.test('a cluster on the core of Node.js', async (t) => {
  const port = await stablePort();
  const server = await startCluster({
    config: {
      core: 'node',
      metrics: { port },
      rateLimit: { exempt: ['127.0.0.1'] },
      shutdown: { drainSeconds: 10, closeSpreadSeconds: 0 },
    },
  });
  t.teardown(() => server.kill());

  await t.test('the log and the metrics name the core', async (t) => {
    t.match(await server.logged(({ msg }) => msg === 'ready'), { core: 'node' });
    t.ok(
      await server.logged(({ msg }) =>
        String(msg).startsWith('core: node, which is slower than uWebSockets.js (the option core is node)'),
      ),
    );
    await until(async () => {
      const families = parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
      return families.get('collab_core')?.samples.find(({ labels }) => labels['core'] === 'node')?.value === 2;
    });
  });

  await t.test('all workers serve on one port, and one that was killed is replaced', async (t) => {
    const seen = new Set<string>();
    await until(async () => seen.add(await answering(server)).size === 2);
    const [killed = 0] = server.pids('web');
    process.kill(killed, 'SIGKILL');
    await until(() => !isRunning(killed) && server.pids('web').length === 2);
    await until(async () => seen.add(await answering(server)).size === 3);
    t.pass('the new worker serves, too');
  });

  await t.test('SIGHUP replaces every worker, and no request is refused', async (t) => {
    const before = server.pids('web');
    const loads = [
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: true, pauseMs: pauseBeside(server, 50) }),
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: false, pauseMs: pauseBeside(server, 8) }),
      startLoad({ url: `${server.url}/livez`, expect: 200, keepAlive: true, pauseMs: () => 4_000 }),
    ];
    server.signal('SIGHUP');
    await server.logged(({ msg }) => msg === 'all web workers replaced');
    const tallies = await Promise.all(loads.map((load) => load.stop()));
    t.same(
      tallies.flatMap(({ bad }) => bad),
      [],
    );
    for (const { good } of tallies) t.ok(good > 3, `${good} requests`);
    t.notOk(server.pids('web').some((pid) => before.includes(pid)));
  });

  t.equal((await server.stop()).code, 0);
});
