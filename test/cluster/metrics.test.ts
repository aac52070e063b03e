import { createServer } from 'node:net';
import t from 'tap';
import { MetricsTotals } from '../../src/observability/metrics-totals.ts';
import { openMetrics } from '../../src/cluster/metrics-server.ts';
import { metricFamilies, Metrics } from '../../src/observability/metrics.ts';
import { version } from '../../src/model/version.ts';
import { initFolder, stablePort, startCluster, until } from '../helpers/cluster.ts';
import { collab } from '../helpers/command.ts';
import { type Family, parsePrometheus } from '../helpers/prometheus.ts';
import { readSource } from '../helpers/sources.ts';
import { TestSocket } from '../helpers/socket.ts';
import { userToken } from '../helpers/user-token.ts';

/** Sum of the samples of a family whose labels match. */
function total(
  families: Map<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
  suffix = '',
): number {
  const samples = families.get(`collab_${name}`)?.samples ?? [];
  const fits = samples.filter(
    (sample) =>
      sample.name === `collab_${name}${suffix}` &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return fits.reduce((sum, { value }) => sum + value, 0);
}

t.test('counters with fixed labels are 0 from the start on, so that their first increment is an increase', (t) => {
  const totals = new MetricsTotals();
  const restarts = () =>
    parsePrometheus(totals.render())
      .get('collab_worker_restarts_total')
      ?.samples.map(({ labels, value }) => [labels['role'], labels['reason'], value]);
  const zeros = [
    ['web', 'ended', 0],
    ['web', 'hung', 0],
    ['background', 'ended', 0],
    ['background', 'hung', 0],
  ];
  t.strictSame(restarts(), zeros);
  totals.count('worker_restarts_total', { role: 'web', reason: 'ended' });
  t.strictSame(restarts(), [['web', 'ended', 1], ...zeros.slice(1)], 'the same series counts');
  const families = parsePrometheus(totals.render());
  for (const family of ['ws_resume_total', 'ws_closed_total', 'uploads_bytes_total', 'lmdb_ended_holders_total'])
    t.equal(total(families, family), 0, family);
  for (const family of ['ws_resume_total', 'ws_closed_total', 'uploads_bytes_total', 'lmdb_ended_holders_total'])
    t.ok(families.has(`collab_${family}`), family);
  t.end();
});

t.test('counts of workers are added up and outlive them; their gauges do not', (t) => {
  const totals = new MetricsTotals();
  const workers = ['web-1', 'web-2'].map((id) => ({ id, metrics: new Metrics(), open: 3 }));
  for (const { id, metrics, open } of workers) {
    metrics.counter('ws_closed_total', { code: '1000' }).value += 2;
    metrics.histogram('lmdb_txn_duration_seconds').observe(0.002);
    metrics.histogram('lmdb_txn_duration_seconds').observe(70);
    metrics.gauge('ws_connections', () => [[{ environment: 'a"b\\c\nd' }, open]]);
    totals.add(id, metrics.takeReport());
    totals.add(id, metrics.takeReport());
  }
  let families = parsePrometheus(totals.render());
  t.equal(total(families, 'ws_closed_total', { code: '1000' }), 4);
  t.equal(total(families, 'ws_connections', { environment: 'a"b\\c\nd' }), 6, 'label values are escaped');
  t.equal(total(families, 'lmdb_txn_duration_seconds', {}, '_count'), 4);
  t.equal(total(families, 'lmdb_txn_duration_seconds', {}, '_sum'), 140.004);
  t.equal(total(families, 'lmdb_txn_duration_seconds', { le: '0.0025' }, '_bucket'), 2);
  t.equal(total(families, 'build_info', { version }), 1);
  totals.dropGauges('web-1');
  families = parsePrometheus(totals.render());
  t.equal(total(families, 'ws_connections'), 3);
  t.equal(total(families, 'ws_closed_total'), 4);
  t.end();
});

t.test('the docs list exactly the existing metrics, and the dashboard uses no others', (t) => {
  const named = (path: string): Set<string> =>
    new Set(
      [...readSource(path).matchAll(/collab_([a-z0-9_]+?)(?:_bucket)?(?=[^a-z0-9_])/g)].map(([, name = '']) => name),
    );
  const families = new Set(Object.keys(metricFamilies));
  const listed = [...readSource('docs/operations.md').matchAll(/^\| `collab_([a-z0-9_]+)` \| (\w+)/gm)].map(
    ([, name = '', type = '']) => `${name} ${type}`,
  );
  t.strictSame(
    listed.toSorted(),
    Object.entries(metricFamilies)
      .map(([name, { type }]) => `${name} ${type}`)
      .toSorted(),
  );
  for (const path of ['docs/operations.md', 'docs/deploy/grafana-dashboard.json']) {
    t.strictSame(
      [...named(path)].filter((name) => !families.has(name)),
      [],
      path,
    );
  }
  t.strictSame(
    [...families].filter((name) => !named('docs/deploy/grafana-dashboard.json').has(name)),
    [],
    'the dashboard shows all of it',
  );
  t.end();
});

t.test('the listener answers GET /metrics, and requires the token if one is set', async (t) => {
  const server = await openMetrics({ host: '127.0.0.1', port: 0, token: 'open sesame' });
  t.teardown(() => server.close());
  const ask = (path: string, init?: RequestInit): Promise<Response> =>
    fetch(`http://127.0.0.1:${server.port}${path}`, init);
  const headers = { Authorization: 'Bearer open sesame' };
  const answer = await ask('/metrics', { headers });
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const families = parsePrometheus(await answer.text());
  t.equal(total(families, 'build_info', { version }), 1);
  t.equal(total(families, 'ws_connections'), 0);
  t.equal(families.get('collab_ws_connections')?.samples.length, 1, 'with a value, though there are no workers');
  t.ok(total(families, 'process_resident_memory_bytes', { process: 'primary' }) > 1_000_000);
  for (const wrong of [undefined, { Authorization: 'Bearer open' }, { Authorization: 'open sesame' }]) {
    t.equal((await ask('/metrics', wrong && { headers: wrong })).status, 401);
  }
  t.equal((await ask('/', { headers })).status, 404);
  t.equal((await ask('/metrics', { method: 'POST', headers })).status, 404);
});

t.test('a port in use is a clear start error', async (t) => {
  const taken = createServer();
  t.teardown(() => void taken.close());
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  const folder = await initFolder({ metrics: { port } });
  const end = await collab(['start', '--dir', folder.dir, '--port', '0', '--workers', '1']);
  t.match(end, {
    code: 1,
    stderr: new RegExp(
      `Port ${port} on 127.0.0.1 is in use by another program. Stop that program, or choose another port with metrics.port`,
    ),
  });
  const status = await collab(['status', '--dir', folder.dir, '--json'], { inside: true });
  t.match(status, { stdout: /"running":false/ }, 'and nothing runs');
});

t.test('a cluster of two workers counts requests, sockets, events and commits', async (t) => {
  const port = await stablePort();
  const cluster = await startCluster({
    workers: 2,
    config: { metrics: { port }, rateLimit: { perMinute: 60 }, shutdown: { closeSpreadSeconds: 0 } },
  });
  t.teardown(() => cluster.kill());
  const { secretKey, publishableKey } = cluster.keys;
  const read = async (): Promise<Map<string, Family>> =>
    parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  const api = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${cluster.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  await api('PUT', '/users/ann', { name: 'Ann' });
  const token = await userToken(cluster.keys, 'ann');
  const url = `${cluster.url.replace('http', 'ws')}/api/v1/ws`;
  const headers = { 'X-Service-Key': publishableKey, 'X-Service-Token': token };
  const socket = new TestSocket(url, { headers });
  const { data } = await socket.frame('welcome');
  const { thread } = (await (await api('POST', '/rooms/a%2Fb/threads', { userId: 'ann', body: 'one' })).json()) as {
    thread: { id: string };
  };
  for (let n = 0; n < 10; n++) await api('POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: `${n}` });
  await api('GET', '/threads/th_nothing');
  await api('GET', '/no/such/thing');
  await fetch(`${cluster.url}/livez`);
  await socket.request('comment.create', { threadId: thread.id, body: 'by socket' });
  const back = new TestSocket(`${url}?epoch=${String(data?.['epoch'])}&since=${String(data?.['seq'])}`, { headers });
  await back.frame('welcome');
  await until(async () => total(await read(), 'ws_connections', { environment: 'default' }) === 2);
  for (const process of ['primary', 'web-1', 'web-2', 'background-3']) {
    await until(
      async () =>
        total(await read(), 'process_resident_memory_bytes', { process }) > 1_000_000 &&
        total(await read(), 'process_cpu_seconds_total', { process }) > 0,
    );
    await until(async () =>
      ((await read()).get('collab_nodejs_eventloop_lag_p99_seconds')?.samples ?? []).some(
        ({ labels }) => labels['process'] === process,
      ),
    );
  }
  let families = await read();
  const route = '/api/v1/threads/:threadId/comments';
  const expected: readonly [string, Readonly<Record<string, string>>, number][] = [
    ['http_requests_total', { method: 'POST', route, status: '201' }, 10],
    ['http_requests_total', { route: '/api/v1/threads/:threadId', status: '404' }, 1],
    ['http_requests_total', { route: 'none', status: '404' }, 1],
    ['http_requests_total', { route: '/livez', status: '200' }, 1],
    ['ws_resume_total', { recovered: 'true' }, 1],
    ['ws_messages_total', { direction: 'in', type: 'comment.create' }, 1],
    ['ws_messages_total', { direction: 'out', type: 'welcome' }, 2],
  ];
  // Each process reports once a second, at a time of its own.
  for (const [name, labels, count] of expected)
    await until(async () => total((families = await read()), name, labels) >= count);
  for (const [name, labels, count] of expected)
    t.equal(total(families, name, labels), count, `${name} ${JSON.stringify(labels)}`);
  t.equal(total(families, 'http_request_duration_seconds', { method: 'POST', route }, '_count'), 10);
  await until(async () => total((families = await read()), 'events_total', { type: 'comment.created' }) === 11);
  t.equal(total(families, 'events_total', { type: 'thread.created' }), 1);
  await until(
    async () =>
      total((families = await read()), 'ws_messages_total', { direction: 'out', type: 'comment.created' }) >= 11,
  );
  await until(async () => total((families = await read()), 'lmdb_txn_duration_seconds', {}, '_count') >= 12);
  t.ok(total(families, 'lmdb_used_bytes') > 4096);
  t.notOk(
    [...families.values()].some(({ samples }) =>
      samples.some(({ labels }) =>
        Object.values(labels).some((value) => value.includes(thread.id) || value.includes('a%2Fb')),
      ),
    ),
    'no id is in a label',
  );

  await socket.terminate();
  await back.close();
  await until(async () => total((families = await read()), 'ws_closed_total') === 2);
  await until(async () => total((families = await read()), 'ws_connections') === 0);
  while ((await api('GET', '/rooms')).status !== 429);
  await until(async () => total((families = await read()), 'rate_limited_total', { policy: 'default' }) === 1);
  const [worker] = cluster.pids('web');
  process.kill(worker ?? 0, 'SIGKILL');
  await until(() => cluster.pids('web').length === 2 && !cluster.pids('web').includes(worker ?? 0));
  t.equal(total(await read(), 'http_requests_total', { route }), 10, 'what a dead worker counted stays');
});
