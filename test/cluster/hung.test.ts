import { connect } from 'node:net';
import t from 'tap';
import { type Cluster, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { testCore } from '../helpers/core.ts';
import { startLoad } from '../helpers/load.ts';
import { parsePrometheus } from '../helpers/prometheus.ts';

const TIMEOUT_SECONDS = 2;

let server: Cluster;
let metricsPort = 0;

t.before(async () => {
  metricsPort = await stablePort();
  server = await startCluster({
    config: {
      metrics: { port: metricsPort },
      workerTimeoutSeconds: TIMEOUT_SECONDS,
      rateLimit: { exempt: ['127.0.0.1'] },
      shutdown: { closeSpreadSeconds: 0 },
    },
  });
});

t.teardown(async () => {
  for (const pid of [server.primary.pid ?? 0, ...server.pids('web'), ...server.pids('background')])
    signal(pid, 'SIGCONT');
  await server.kill();
});

// The process may have ended already.
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    return;
  }
}

/** Whether a new connection is answered within a second. */
function isAnswered({ port }: Cluster): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'));
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once('data', () => end(true));
    socket.once('error', () => end(false));
  });
}

/** Lets real time pass, because a stopped process offers no condition to wait for. */
const pass = (seconds: number): Promise<void> => {
  const startedAt = performance.now();
  return until(() => performance.now() - startedAt >= seconds * 1_000, 2 * seconds * 1_000);
};

const countAnswered = async (server: Cluster, count: number): Promise<number> =>
  (await Promise.all(Array.from({ length: count }, () => isAnswered(server)))).filter(Boolean).length;

t.test(
  'a web worker that is stopped is killed and replaced: new connections are answered again, and the log says why',
  async (t) => {
    const [stopped = 0] = server.pids('web');
    process.kill(stopped, 'SIGSTOP');
    // On the core of Node.js all workers accept from one socket, so a stopped one gets no new connections.
    if (testCore === 'uws') await until(async () => (await countAnswered(server, 20)) < 20, 10_000);
    else await until(async () => (await countAnswered(server, 20)) === 20);
    const line = await server.logged(({ hung }) => hung !== undefined);
    t.match(line, {
      level: 'error',
      workerPid: stopped,
      stopped: true,
      msg: /^worker web-\d has not answered the primary for [23] s and is killed \(SIGKILL\): it was stopped by a signal \(SIGSTOP\); a new worker replaces it$/,
    });
    await until(() => server.pids('web').length === 2 && !server.pids('web').includes(stopped));
    await until(async () => (await countAnswered(server, 20)) === 20);
    t.match(await server.logged(({ ended }) => ended === line['hung']), {
      level: 'warn',
      reason: /it did not answer the primary for [23] s/,
    });
    const metrics = parsePrometheus(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text());
    t.same(
      metrics
        .get('collab_worker_restarts_total')
        ?.samples.map(({ labels, value }) => [labels['role'], labels['reason'], value]),
      [
        ['web', 'ended', 0],
        ['web', 'hung', 1],
        ['background', 'ended', 0],
        ['background', 'hung', 0],
      ],
    );
  },
);

t.test('a background worker that is stopped is killed and replaced', async (t) => {
  const [stopped = 0] = server.pids('background');
  process.kill(stopped, 'SIGSTOP');
  t.match(await server.logged(({ workerPid, hung }) => hung !== undefined && workerPid === stopped), {
    hung: /^background-/,
  });
  await until(() => server.pids('background').some((pid) => pid !== stopped));
  t.equal(server.pids('web').length, 2);
});

t.test('a server that was stopped as a whole keeps its workers when it resumes', async (t) => {
  const hung = (): number => server.log().filter((line) => line['hung'] !== undefined).length;
  const before = hung();
  const pids = [server.primary.pid ?? 0, ...server.pids('web'), ...server.pids('background')];
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  await pass(2 * TIMEOUT_SECONDS);
  for (const pid of pids) process.kill(pid, 'SIGCONT');
  await pass(2 * TIMEOUT_SECONDS);
  await until(async () => (await countAnswered(server, 20)) === 20);
  t.same([server.primary.pid, ...server.pids('web'), ...server.pids('background')], pids);
  t.equal(hung(), before);
});

t.test('a worker that is stopped during writes delays the others no longer than the timeout', async (t) => {
  const headers = { Authorization: `Bearer ${server.keys.secretKey}`, 'Content-Type': 'application/json' };
  const call = async (method: string, path: string, body: object): Promise<Record<string, { id: string }>> =>
    (await (
      await fetch(`${server.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
    ).json()) as Record<string, { id: string }>;
  await call('PUT', '/users/ann', { name: 'Ann' });
  const { thread } = await call('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'first' });
  const body = (n: number): string => JSON.stringify({ userId: 'ann', body: `comment ${n}` });
  const url = `${server.url}/api/v1/threads/${thread?.id}/comments`;
  for (let round = 1; round <= 2; round++) {
    const loads = Array.from({ length: 8 }, () =>
      startLoad({ url, method: 'POST', headers, body, expect: 201, keepAlive: true, pauseMs: () => 5 }),
    );
    const good = (): number => loads.reduce((sum, { tally }) => sum + tally.good, 0);
    await until(() => good() > 50);
    const [stopped = 0] = server.pids('web');
    process.kill(stopped, 'SIGSTOP');
    await until(() => server.pids('web').length === 2 && !server.pids('web').includes(stopped), 20_000);
    const before = good();
    await until(() => good() > before + 50);
    await Promise.all(loads.map((load) => load.stop()));
    await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    t.ok(good() > before + 50, `round ${round}`);
  }
});
