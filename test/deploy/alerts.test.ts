import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { metricFamilies } from '../../src/observability/metrics.ts';
import { readSource } from '../helpers/sources.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const rules = readSource('docs/deploy/alerts.yml');
const conditions = [...rules.matchAll(/^ +expr: (.+)$/gm)].map(([, expression = '']) => expression);
const promtool = process.env['PROMTOOL'] ?? 'promtool';
const skip =
  spawnSync(promtool, ['--version']).error === undefined ? false : 'no promtool here (package prometheus of Debian)';

t.test(
  'the rules for Prometheus are the conditions that the operations guide explains, and use metrics that exist',
  (t) => {
    const [, table = ''] = /^## Alerts\n([^]*?)^## /m.exec(readSource('docs/operations.md')) ?? [];
    const explained = [...table.matchAll(/^\| `([^`]*collab[^`]*)`/gm)].map(([, expression = '']) => expression);
    t.strictSame(conditions, explained);
    for (const [, name = ''] of rules.matchAll(/collab_([a-z0-9_]+?)(?:_bucket)?(?=[^a-z0-9_])/g))
      t.ok(name in metricFamilies, name);
    t.end();
  },
);

/** A unit test of promtool: samples of a series, one a minute, and whether the alert fires at minute 20. */
interface Case {
  readonly alert: string;
  readonly series: string;
  readonly values: string;
  readonly fires: boolean;
}

const restarts = (labels: string): string => `collab_worker_restarts_total{${labels}}`;
const cases: readonly Case[] = [
  { alert: 'CollabDown', series: 'up{job="collab"}', values: '1x15 0x10', fires: true },
  { alert: 'CollabDown', series: 'up{job="collab"}', values: '1x30', fires: false },
  // The server reports 0 from its start on, so that the first restart is an increase.
  { alert: 'CollabWorkerRestarts', series: restarts('role="web", reason="ended"'), values: '0x14 1x10', fires: true },
  { alert: 'CollabWorkerRestarts', series: restarts('role="web", reason="ended"'), values: '0x30', fires: false },
  { alert: 'CollabErrors', series: 'collab_http_requests_total{status="500"}', values: '0+60x30', fires: true },
  { alert: 'CollabErrors', series: 'collab_http_requests_total{status="200"}', values: '0+60x30', fires: false },
  { alert: 'CollabSlowClients', series: 'collab_ws_closed_total{code="1013"}', values: '0+120x30', fires: true },
  {
    alert: 'CollabRateLimited',
    series: 'collab_rate_limited_total{policy="default"}',
    values: '0+600x30',
    fires: true,
  },
  {
    alert: 'CollabHeldSnapshot',
    series: 'collab_lmdb_held_snapshot_seconds{table="tree", pid="7", command="x"}',
    values: '0+60x30',
    fires: true,
  },
];

t.test('promtool accepts the rules, and they fire for series as the server reports them', { skip }, (t) => {
  const file = join(tempFolder(t), 'alerts-test.yml');
  const tests = cases.map(({ alert, series, values, fires }) => {
    const expected = fires ? `{ labels: '{alertname="${alert}"}', value: 1 }` : '';
    return [
      '  - interval: 1m',
      `    input_series: [{ series: '${series}', values: '${values}' }]`,
      `    promql_expr_test: [{ eval_time: 20m, expr: 'count by (alertname) (ALERTS{alertname="${alert}", alertstate="firing"})', exp_samples: [${expected}] }]`,
    ].join('\n');
  });
  writeFileSync(file, `rule_files: ['${resolve('docs/deploy/alerts.yml')}']\ntests:\n${tests.join('\n')}\n`);
  for (const args of [
    ['check', 'rules', 'docs/deploy/alerts.yml'],
    ['test', 'rules', file],
  ]) {
    const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' });
    t.equal(status, 0, `promtool ${args.slice(0, 2).join(' ')}: ${stdout}${stderr}`);
  }
  t.end();
});
