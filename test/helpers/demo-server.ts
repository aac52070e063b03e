import { rmSync } from 'node:fs';
import type { Test } from 'tap';
import type { InitOutput } from './cli.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { collabJson } from './command.ts';
import { api } from './widget-page.ts';

/** The server that the files share which `npm test` runs in one process. It ends with the process. */
let shared: Promise<Cluster> | undefined;

/**
 * A server of two workers with the demo page, whose environment `default` is as after a first start: with keys of its
 * own, the users of the demo, and nothing else. Files that start after each other share the server, and each gets a new
 * environment. For tests that end no process and need no other configuration.
 */
export async function demoServer(t: Test): Promise<Cluster> {
  if (shared === undefined) {
    shared = start();
    return shared;
  }
  const cluster = await shared;
  const dir = ['--dir', cluster.dir];
  await collabJson(t, ['env', 'delete', 'default', '--yes', ...dir]);
  const { id, slug, jwtSecret, jwtKid } = await collabJson<InitOutput['environment'] & InitOutput>(t, [
    ...['env', 'create', 'default', '--name', 'Default'],
    ...dir,
  ]);
  const key = (kind: string) =>
    collabJson<Record<string, string>>(t, ['key', 'create', '--env', 'default', '--kind', kind, ...dir]);
  const { secretKey = '' } = await key('secret');
  const { publishableKey = '' } = await key('publishable');
  const fresh = { ...cluster, keys: { environment: { id, slug }, secretKey, publishableKey, jwtSecret, jwtKid } };
  for (const [userId, fields] of [
    ['ann', { name: 'Ann' }],
    ['bob', { name: 'Bob' }],
    ['ci-bot', { name: 'CI', kind: 'bot' }],
  ] as const)
    await api(fresh, 'PUT', `/users/${userId}`, fields);
  return fresh;
}

async function start(): Promise<Cluster> {
  const cluster = await startCluster({
    config: { rateLimit: { perMinute: 1_000_000 }, demo: true, shutdown: { closeSpreadSeconds: 0 } },
  });
  process.once('exit', () => {
    for (const pid of [...cluster.pids('web'), ...cluster.pids('background')]) process.kill(pid, 'SIGKILL');
    cluster.signal('SIGKILL');
    rmSync(cluster.dir, { recursive: true, force: true, maxRetries: 3 });
  });
  return cluster;
}
