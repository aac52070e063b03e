import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { collab, type Finished, startServer } from '../helpers/cli.ts';
import { stablePort, until } from '../helpers/cluster.ts';
import { collab as collabInside } from '../helpers/command.ts';
import { type Certificate, makeCertificate, useCertificate } from '../helpers/engines/certificates.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { nodeFolder } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { init, newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const PASSWORD = 'sesame-47';
const AWS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: PASSWORD };

/** Commands in this process, which takes a tenth of the time. Refusals of `start` as a process are in `start.test.ts`. */
const inside =
  (env: Record<string, string> = {}) =>
  (args: readonly string[]) =>
    collabInside(args, { inside: true, env });

/** `start` and `doctor` name the option in one line, and what to do, without the password. */
async function isRefused(
  t: Test,
  dir: string,
  says: RegExp,
  run: (args: readonly string[]) => Promise<Finished>,
): Promise<void> {
  const start = await run(['start', '--dir', dir, '--port', '0']);
  t.equal(start.code, 2, start.stderr);
  const lines = start.stderr.split('\n').filter((line) => says.test(line));
  t.equal(lines.length, 1, start.stderr);
  const doctor = await run(['doctor', '--dir', dir]);
  t.not(doctor.code, 0);
  t.match(doctor.stdout + doctor.stderr, says);
  t.notMatch([start, doctor].map(({ stdout, stderr }) => stdout + stderr).join(), PASSWORD);
}

t.test('PostgreSQL', { skip: skipWithout('openssl', ...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  const [right, wrong] = [makeCertificate(t, 'localhost'), makeCertificate(t, 'elsewhere.test')];
  useCertificate(postgres, right);
  postgres.sql('alter system set ssl = on');
  postgres.sql('select pg_reload_conf()');
  const url = (cert: string): string =>
    `postgres://postgres:${PASSWORD}@localhost:${postgres.port}/collab?sslmode=verify-full${cert}`;
  const trusting = (cert: Certificate): string => url(`&sslrootcert=${cert.cert}`);

  const says = /store\.url: PostgreSQL at localhost:\d+\/collab .*certificate that does not verify .*set sslrootcert/;
  await isRefused(t, nodeFolder(t, { store: { url: url('') } }), says, inside());
  await isRefused(t, nodeFolder(t, { store: { url: trusting(wrong) } }), says, inside());

  await t.test('a certificate that is replaced beside a node: 503 until it verifies again', async (t) => {
    const dir = nodeFolder(t, { store: { url: trusting(right) } });
    const keys = await init(dir);
    const server = await startServer(t, dir, ['--workers', '1']);
    const status = async (): Promise<number> => {
      const headers = { Authorization: `Bearer ${keys.secretKey}` };
      return (await fetch(`${server.url}/api/v1/rooms/lobby/threads`, { headers })).status;
    };
    t.equal(await status(), 200);
    useCertificate(postgres, wrong);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'collab%'`;
    await until(async () => {
      postgres.sql(cut);
      return (await status()) === 503;
    });
    t.equal((await fetch(`${server.url}/readyz`)).status, 503);
    useCertificate(postgres, right);
    await until(async () => (await status()) === 200);
    await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    t.equal(await server.end(), 0);
    t.notMatch(server.errors(), PASSWORD);
  });
  useCertificate(postgres, wrong);
  await isRefused(t, nodeFolder(t, { store: { url: trusting(wrong) } }), says, inside());
});

t.test('Redis', { skip: skipWithout('openssl', ...POSTGRES, ...REDIS) }, async (t) => {
  const postgres = await startPostgres(t);
  const says = /shared\.url: Redis at localhost:\d+\/0 .*certificate that does not verify .*ca in the URL/;
  for (const host of ['localhost', 'elsewhere.test']) {
    const { cert, key } = makeCertificate(t, host);
    const port = await stablePort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
    await startRedis(t, '--tls-port', String(port), ...files, '--tls-auth-clients', 'no');
    // A certificate of nobody who is known, and one that is trusted and has another name.
    const ca = host === 'localhost' ? '' : `?ca=${cert}`;
    const shared = { url: `rediss://:${PASSWORD}@localhost:${port}/0${ca}` };
    await isRefused(t, nodeFolder(t, { store: { url: postgres.url }, shared }), says, inside());
  }
});

t.test('S3', { skip: skipWithout('openssl') }, async (t) => {
  const says = /blobs\.url: localhost:\d+, bucket files: its certificate is not trusted .*NODE_EXTRA_CA_CERTS/;
  for (const host of ['localhost', 'elsewhere.test']) {
    const { cert, key } = makeCertificate(t, host);
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) => response.end());
    await once(server.listen(0), 'listening');
    t.teardown(() => server.close());
    const { port } = server.address() as AddressInfo;
    const blobs = { url: 's3://files/prefix', endpoint: `https://localhost:${port}`, pathStyle: true };
    const dir = tempFolder(t);
    await newFolder(dir);
    writeFileSync(join(dir, 'config.json'), JSON.stringify({ blobs, storage: { minFreeMb: 0 } }));
    // Node.js reads the variable as it starts.
    const apart = (args: readonly string[]) => collab(args, { env: { ...AWS, NODE_EXTRA_CA_CERTS: cert } });
    await isRefused(t, dir, says, host === 'localhost' ? inside(AWS) : apart);
  }
});
