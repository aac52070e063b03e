import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import t, { type Test } from 'tap';
import { findFreePort } from '../../src/cluster/free-port.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { until } from '../helpers/cluster.ts';
import { startTestServer } from '../helpers/http.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

// A real coturn on the loopback interface accepts the credentials that the server creates. Needs Debian's package
// `coturn`.

const SECRETS = ['north', 'south'] as const;
const installed = ['turnserver', 'turnutils_uclient'].every((name) =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, name))),
);
const options = installed ? { timeout: 60_000 } : { skip: 'coturn is not installed (apt-get install coturn)' };

/** Starts coturn with a shared secret. Resolves with its port once it listens; it ends with the test. */
async function startCoturn(t: Test, secret: string): Promise<number> {
  const folder = tempFolder(t);
  const port = await findFreePort('127.0.0.1', 0, 0);
  const loopback = [
    '--listening-ip',
    '127.0.0.1',
    '--relay-ip',
    '127.0.0.1',
    '--allow-loopback-peers',
    '--listening-port',
    String(port),
  ];
  const files = ['--pidfile', join(folder, 'pid'), '--db', join(folder, 'db'), '--log-file', 'stdout'];
  const args = [
    '-n',
    ...loopback,
    ...files,
    '--use-auth-secret',
    '--static-auth-secret',
    secret,
    '--realm',
    'example.org',
    '--no-tls',
    '--no-dtls',
    '--no-cli',
  ];
  const server = spawn('turnserver', args, { stdio: 'ignore' });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  t.teardown(async () => {
    server.kill('SIGKILL');
    await ended;
  });
  await until(async () => server.exitCode !== null || (await listens(port)));
  return port;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Whether coturn relays for these credentials. */
function isRelayed(port: number, username: string, password: string): Promise<boolean> {
  const client = spawn(
    'turnutils_uclient',
    ['-y', '-c', '-n', '1', '-u', username, '-w', password, '-p', String(port), '127.0.0.1'],
    { stdio: 'ignore' },
  );
  return new Promise((resolve, reject) => {
    client.once('error', reject);
    client.once('exit', (code) => resolve(code === 0));
  });
}

t.test('coturn relays for the credentials that the server creates, and for no others', options, async (t) => {
  const ports = await Promise.all(SECRETS.map((secret) => startCoturn(t, secret)));
  const [port = 0, old = 0] = ports;
  const flags = { 'turn.urls': `turn:127.0.0.1:${port}?transport=udp`, 'turn.secret': SECRETS.join(',') };
  const { request } = await startTestServer(t, { flags, clock: systemClock });
  const mint = async (userId: string) =>
    (
      await request<{ username: string; password: string }>(
        'GET',
        `/turn-credentials?ttl=60&userId=${encodeURIComponent(userId)}`,
      )
    ).json;
  const [ann, odd] = await Promise.all([mint('ann'), mint(`it's "a:b\\c" 漢 5%`)]);
  const [mine, another, wrong, otherServer, expired] = await Promise.all([
    isRelayed(port, ann.username, ann.password),
    isRelayed(port, odd.username, odd.password),
    isRelayed(port, ann.username, odd.password),
    isRelayed(old, ann.username, ann.password),
    isRelayed(port, ann.username.replace(/^\d+/, '1'), ann.password),
  ]);
  t.ok(mine);
  t.ok(another, 'for any user id');
  t.notOk(wrong, 'not with the password of another user');
  t.notOk(otherServer, 'the first secret signs');
  t.notOk(expired);
});
