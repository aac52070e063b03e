import { join } from 'node:path';
import t from 'tap';
import { collab, collabJson, startServer } from '../helpers/cli.ts';
import { stablePort, until } from '../helpers/cluster.ts';
import { killLines, startFixture } from '../helpers/line-process.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { type Family, parsePrometheus } from '../helpers/prometheus.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('a stopped process that keeps a snapshot open is named by status, doctor, the log and /metrics', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const port = await stablePort();
  const server = await startServer(t, dir, ['--workers', '1'], { env: { COLLAB_METRICS_PORT: String(port) } });
  const metrics = async (): Promise<Map<string, Family>> =>
    parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  const heldSnapshots = async () => (await metrics()).get('collab_lmdb_held_snapshot_seconds')?.samples ?? [];
  await until(async () => ((await metrics()).get('collab_lmdb_used_bytes')?.samples[0]?.value ?? 0) > 4_096);
  t.strictSame(await heldSnapshots(), [], 'no snapshot is held for long yet');
  const holder = startFixture('snapshot-holder', join(dir, 'data', 'store'), 'log');
  t.teardown(() => killLines(holder));
  await until(() => holder.lines.includes('held'), 60_000);
  const { pid = 0 } = holder.child;
  process.kill(pid, 'SIGSTOP');

  t.match((await collabJson<{ heldSnapshots: object[] }>(t, ['status', '--dir', dir])).heldSnapshots, [
    { table: 'log', pid, command: /^snapshot-holder/, stopped: true },
  ]);
  t.match(
    (await collab(['status', '--dir', dir])).stdout,
    new RegExp(`Warning: process ${pid} \\(snapshot-holder .*, stopped\\) keeps a snapshot of the log open`),
  );
  const report = JSON.parse((await collab(['doctor', '--dir', dir, '--json'])).stdout) as {
    checks: { name: string; level: string; finding: string; remedy: string }[];
  };
  t.match(
    report.checks.filter(({ name }) => name === 'snapshots'),
    [{ level: 'warn', finding: new RegExp(`process ${pid} `), remedy: new RegExp(`kill -CONT ${pid}`) }],
  );
  await until(() => server.errors().includes('a process keeps a snapshot of the store open'), 60_000);
  const line =
    server
      .errors()
      .split('\n')
      .find((text) => text.includes('a process keeps a snapshot of the store open')) ?? '';
  t.match(JSON.parse(line), { table: 'log', pid, stopped: true });
  // Workers report once per second.
  await until(async () => (await heldSnapshots()).length > 0);
  t.match(await heldSnapshots(), [{ labels: { table: 'log', pid: String(pid), command: /^snapshot-holder/ } }]);
  t.ok((await heldSnapshots()).every(({ value }) => value >= 10));

  process.kill(pid, 'SIGKILL');
  await until(() => server.errors().includes('has been closed'), 60_000);
  await until(async () => (await heldSnapshots()).length === 0);
  t.same((await collabJson<{ heldSnapshots: object[] }>(t, ['status', '--dir', dir])).heldSnapshots, []);
  t.equal(await server.end(), 0);
});
