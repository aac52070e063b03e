import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { type Cluster, until } from '../helpers/cluster.ts';
import { collab } from '../helpers/command.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { startCuttingProxy } from '../helpers/engines/cutting-proxy.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { NodeLoad } from '../helpers/engines/node-load.ts';
import { startNodes } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { startTcpProxy } from '../helpers/engines/tcp-proxy.ts';
import { startReceiver } from '../helpers/receiver.ts';

// Minutes of waiting, so only in the longer runs (decision 82).
const skip = CRASH_FACTOR > 1 ? skipWithout(...POSTGRES, ...REDIS) : 'only with CRASH_FACTOR > 1';

/** Longer than leases last. */
const STOPPED_MS = 25_000;
/** How long connections are cut in each way. */
const CUTTING_MS = 20_000;

/** A process with all its descendants. */
function treeOf(pid: number): number[] {
  const lists = readdirSync(`/proc/${pid}/task`).map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8'),
  );
  const children = lists.flatMap((list) => list.split(' ').filter((text) => text.trim() !== ''));
  return [pid, ...children.flatMap((child) => treeOf(Number(child)))];
}

/** Sends a signal to all processes of a node. */
function signalNode({ primary }: Cluster, signal: NodeJS.Signals): void {
  for (const pid of treeOf(primary.pid ?? 0)) process.kill(pid, signal);
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

for (const shared of ['Redis', 'PostgreSQL alone'] as const) {
  t.test(
    `nodes that are stopped, and connections that are ended, lose and double nothing: ${shared}`,
    { skip, timeout: 900_000 * CRASH_FACTOR },
    async (t) => {
      const postgres = await startPostgres(t, { durable: true });
      const proxy = await startCuttingProxy(t, postgres.port);
      const redis = shared === 'Redis' ? await startRedis(t) : null;
      const redisProxy = redis === null ? null : await startTcpProxy(t, redis.port);
      const receiver = await startReceiver(t);
      const nodes = await startNodes(
        t,
        {
          store: { url: postgres.url.replace(`:${postgres.port}/`, `:${proxy.port}/`) },
          ...(redisProxy === null ? {} : { shared: { url: `redis://127.0.0.1:${redisProxy.port}/0` } }),
        },
        { config: { plugins: [{ use: 'webhook', allowPrivate: true }] } },
      );
      const [dir = ''] = nodes.dirs;
      const added = await collab(['webhook', 'add', '--url', receiver.url, '--env', 'default', '--dir', dir]);
      t.equal(added.code, 0, added.stderr);
      const load = await NodeLoad.start(t, nodes);
      const endAll = (): string =>
        postgres.sql(
          'select pg_terminate_backend(pid) from pg_stat_activity where backend_type = $$client backend$$ and pid <> pg_backend_pid()',
          'postgres',
        );
      await load.goesOn();

      for (const [number, node] of nodes.all.entries()) {
        // As a load balancer does once the node does not answer.
        load.avoided.add(number);
        signalNode(node, 'SIGSTOP');
        const before = load.answered.length;
        await wait(STOPPED_MS);
        signalNode(node, 'SIGCONT');
        t.ok(load.answered.length > before, 'the others go on while one is stopped');
        await until(async () => (await fetch(`${node.url}/readyz`)).status === 200);
        load.avoided.delete(number);
        await load.goesOn();
      }

      for (const end = Date.now() + CUTTING_MS; Date.now() < end; await wait(1_000)) endAll();
      await load.goesOn();
      for (const bytes of [60_000, 3_000]) {
        proxy.cutWithin(bytes);
        endAll();
        await wait(CUTTING_MS);
      }
      proxy.cutWithin(Infinity);
      await load.goesOn();
      proxy.onText('insert into collab.commits (id) values', () =>
        Math.random() < 0.15 ? 'before' : Math.random() < 0.4 ? 'after' : 'never',
      );
      await wait(CUTTING_MS);
      proxy.onText('', () => 'never');
      if (redisProxy !== null) {
        redisProxy.cutAfter = () => Math.floor(Math.random() * 40_000);
        redisProxy.cut();
        await wait(CUTTING_MS);
        redisProxy.cutAfter = undefined;
        redisProxy.cut();
      }
      await load.goesOn();
      await load.verify(t, receiver);
    },
  );
}
