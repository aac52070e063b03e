import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkMachine } from '../../src/cli/doctor/check-machine.ts';
import { type Finished, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { noNativeCore } from '../helpers/core.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Report {
  readonly ok: boolean;
  readonly checks: readonly { name: string; level: string; finding: string; remedy: string | null }[];
}

/** The check with a name in the report of doctor, which may have failed. */
function checkIn({ stdout }: Finished, name: string): Report['checks'][number] | undefined {
  return (JSON.parse(stdout) as Report).checks.find((check) => check.name === name);
}

t.test('status of a stopped server', async (t) => {
  const dir = tempFolder(t);
  const { environment } = await newFolder(dir);
  const { disk, ...found } = await collabJson<{ disk: { storeBytes: number; filesBytes: number } }>(
    t,
    ['status', '--dir', dir],
    { code: 3, inside: true },
  );
  t.ok(disk.storeBytes > 0);
  t.equal(disk.filesBytes, 0, 'nothing was uploaded');
  t.strictSame(found, {
    dir,
    running: false,
    pid: null,
    address: null,
    workers: null,
    core: null,
    startedAt: null,
    ready: false,
    missingPlugins: 0,
    backgroundFailing: false,
    heldSnapshots: [],
    environments: [{ ...environment, name: 'Default', disabled: false, rooms: 0, threads: 0, users: 0, seq: 0 }],
  });
  t.match(await collab(['status', '--dir', dir], { inside: true }), {
    code: 3,
    stdout: /server +stopped[^]*store +[\d.]+ [kM]B\nfiles +0 kB\n[^]*Next:\n.*collab.* start --dir/,
  });
});

t.test('status and doctor while a server is running', async (t) => {
  const dir = tempFolder(t);
  const configure = (core: string): void => writeFileSync(join(dir, 'config.json'), JSON.stringify({ port: 0, core }));
  const look = () => collab(['doctor', '--dir', dir, '--json']);
  configure('node');
  const { url, ready, process, end } = await startServer(t, dir, ['--workers', '1', '--demo']);
  t.equal(ready.core, 'node');
  const headers = { Authorization: `Bearer ${ready.secretKey}`, 'Content-Type': 'application/json' };
  for (const room of ['a/b', 'ü']) {
    const body = JSON.stringify({ userId: 'ann', body: 'Hi' });
    t.equal(
      (await fetch(`${url}/api/v1/rooms/${encodeURIComponent(room)}/threads`, { method: 'POST', headers, body }))
        .status,
      201,
    );
  }
  const differs = {
    level: noNativeCore === false ? 'warn' : 'fail',
    finding: /^the running server uses node; a start from this shell would (?:use uws_|fail: uWebSockets\.js )/,
  };

  await t.test('they show that it is ready, and what it has', async (t) => {
    t.match(await collab(['status', '--dir', dir]), {
      code: 0,
      stdout: /server +running and ready[^]*workers +1\ncore +node\n/,
    });
    const healthy = await look();
    t.equal(healthy.code, 0, healthy.stdout);
    t.match(checkIn(healthy, 'lock'), { level: 'ok', finding: `taken by the running server, process ${process.pid}` });
    t.match(checkIn(healthy, 'store'), { level: 'ok' });
    t.match(checkIn(healthy, 'ready'), { level: 'ok' });
    t.match(checkIn(healthy, 'http core'), {
      level: 'ok',
      finding: /^node, .*; the running server uses it$/,
      remedy: null,
    });
  });

  await t.test('they name the core of the server, not the one that their own shell would choose', async (t) => {
    const env = { COLLAB_CORE: 'uws' };
    t.match(await collabJson(t, ['status', '--dir', dir], { env }), {
      running: true,
      pid: process.pid,
      address: url,
      workers: 1,
      core: 'node',
      ready: true,
      environments: [{ slug: 'default', rooms: 3, threads: 3, users: 3 }],
    });
    configure('uws');
    t.match(checkIn(await look(), 'http core'), differs);
  });

  await end();
  configure('node');
  t.notMatch(
    checkIn(await collab(['doctor', '--dir', dir, '--json'], { inside: true }), 'http core')?.finding,
    /running server/,
    'without a server it is the core that a start would use',
  );
});

t.test('doctor names the native core of a running server', { skip: noNativeCore }, async (t) => {
  const core = 'uws_linux_x64_115.node';
  const checks = await checkMachine('node', core);
  t.match(
    checks.find(({ name }) => name === 'http core'),
    {
      level: 'warn',
      finding: new RegExp(`^the running server uses ${core}; a start from this shell would use node, `),
      remedy: /restart/,
    },
  );
});

t.test('doctor without a folder fails and says how to create one', async (t) => {
  const ended = await collab(['doctor', '--dir', tempFolder(t), '--json'], { inside: true });
  t.equal(ended.code, 1);
  t.match(checkIn(ended, 'node'), { level: 'ok' });
  t.match(checkIn(ended, 'http core'), { level: noNativeCore === false ? 'ok' : 'warn' });
  t.match(checkIn(ended, 'data folder'), { level: 'fail', remedy: /collab init --dir/ });
});

t.test('doctor finds mistakes of the operator', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  const configure = (config: object): void => writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const look = () => collab(['doctor', '--dir', dir, '--json'], { inside: true });

  configure({ port: 0, host: '0.0.0.0' });
  chmodSync(join(dir, 'data'), 0o755);
  const open = await look();
  t.equal(open.code, 0, 'a warning is no failure');
  t.match(checkIn(open, 'exposure'), { level: 'warn', remedy: /TLS proxy/ });
  t.match(checkIn(open, 'data folder'), { level: 'warn', remedy: `chmod 700 ${join(dir, 'data')}` });

  configure({ port: 0, host: '0.0.0.0', trustProxy: ['10.0.0.0/8'], storage: { minFreeMb: 1_048_576 } });
  const full = await look();
  t.match(checkIn(full, 'exposure'), { level: 'ok' });
  t.match(checkIn(full, 'disk'), { level: 'fail', finding: /below storage\.minFreeMb/ });

  configure({ port: 0, host: '0.0.0.0', demo: true });
  const demo = await look();
  t.equal(demo.code, 1);
  t.match(demo.stderr, /1 of \d+ checks failed/);
  t.match(checkIn(demo, 'exposure'), { level: 'fail', remedy: /Set demo to false/ });

  configure({ prot: 0 });
  t.match(checkIn(await look(), 'config'), { level: 'fail', finding: /prot is not an option; did you mean port/ });
});

t.test('doctor and other commands name a damaged store', async (t) => {
  const dir = tempFolder(t);
  await newFolder(dir);
  writeFileSync(join(dir, 'data', 'store', 'data.mdb'), 'this is no database'.repeat(1000));
  const found = await collab(['doctor', '--dir', dir, '--json'], { inside: true });
  t.match(checkIn(found, 'store'), { level: 'fail', finding: /damaged/ });
  t.match(await collab(['env', 'list', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /^collab: \S+data\.mdb is damaged: .*restore a backup/,
  });
});
