import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createConnection } from 'node:net';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { Connection } from '../../src/adapters/redis/connection.ts';
import { S3Server } from '../doubles/s3/server.ts';
import { wav } from '../fixtures/media.ts';
import { type InitOutput, startServer, type Server } from '../helpers/cli.ts';
import { stablePort, until } from '../helpers/cluster.ts';
import {
  bundleOf,
  type Certificate,
  makeCertificate,
  makeExpiredCertificate,
} from '../helpers/engines/certificates.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { nodeFolder } from '../helpers/engines/nodes.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';
import { REDIS, startRedis } from '../helpers/engines/redis.ts';
import { init, newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

const PASSWORD = 'sesame-47';

/** One that is trusted and expires, and then one of another authority. */
function certificatesOf(t: Test): { right: Certificate; wrong: readonly Certificate[]; trusted: string } {
  const [right, expired] = [makeCertificate(t, 'localhost'), makeExpiredCertificate(t, 'localhost')];
  return { right, wrong: [expired, makeCertificate(t, 'localhost')], trusted: bundleOf(t, right, expired) };
}

type Checks = Readonly<Record<string, unknown>>;
const checks = async ({ url }: Server): Promise<Checks> =>
  ((await (await fetch(`${url}/readyz`)).json()) as { checks: Checks }).checks;

async function hasLogged(server: Server, says: RegExp): Promise<void> {
  await until(() => says.test(server.errors()));
}

t.test('Redis beside a node', { skip: skipWithout('openssl', ...POSTGRES, ...REDIS), timeout: 120_000 }, async (t) => {
  const { right, wrong, trusted } = certificatesOf(t);
  const port = await stablePort();
  const files = ['--tls-cert-file', right.cert, '--tls-key-file', right.key, '--tls-ca-cert-file', right.cert];
  const password = ['--requirepass', PASSWORD];
  const redis = await startRedis(t, '--tls-port', String(port), ...files, '--tls-auth-clients', 'no', ...password);
  const login = { username: undefined, password: PASSWORD, database: 0, tls: false, answerMs: 30_000 } as const;
  const admin = await Connection.open({ host: '127.0.0.1', port: redis.port }, login);
  t.teardown(() => admin.end(new Error('the test has ended')));
  const use = async ({ cert, key }: Certificate): Promise<void> => {
    await admin.send(['CONFIG', 'SET', 'tls-cert-file', cert, 'tls-key-file', key]);
    await admin.send(['CLIENT', 'KILL', 'SKIPME', 'yes']);
  };
  const shared = { url: `rediss://:${PASSWORD}@localhost:${port}/0?ca=${trusted}` };
  const dir = nodeFolder(t, { store: { url: (await startPostgres(t)).url }, shared });
  const keys = await init(dir);
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${keys.secretKey}` };
  const status = async (): Promise<number> =>
    (await fetch(`${server.url}/api/v1/rooms/lobby/threads`, { headers })).status;
  const presence = async (): Promise<{ partial?: boolean }> =>
    (await (await fetch(`${server.url}/api/v1/rooms/lobby/presence`, { headers })).json()) as { partial?: boolean };
  for (const certificate of wrong) {
    await use(certificate);
    await hasLogged(
      server,
      /shared\.url: Redis at localhost:\d+\/0 has a certificate that does not verify \([^)]*\): let ca/,
    );
    await until(async () => (await presence()).partial === true);
    await until(async () => (await checks(server))['shared'] === 'failed');
    t.equal((await fetch(`${server.url}/readyz`)).status, 200);
    t.equal(await status(), 200, 'requests are answered');
  }
  t.match(server.errors(), /certificate that does not verify \(certificate has expired\)/);
  await use(right);
  await hasLogged(server, /the shared memory can be reached again/);
  await until(async () => (await presence()).partial !== true);
  await until(async () => (await checks(server))['shared'] === 'ok');
  t.equal(await server.end(), 0);
  t.notMatch(server.errors(), PASSWORD);
});

/** An end of TLS before a server, whose certificate can be replaced. */
async function startTls(t: Test, target: number, certificate: Certificate) {
  const read = ({ cert, key }: Certificate): { cert: string; key: string } => ({
    cert: readFileSync(cert, 'utf8'),
    key: readFileSync(key, 'utf8'),
  });
  const open = new Set<TLSSocket>();
  const server = createServer(read(certificate), (client) => {
    open.add(client);
    const socket = createConnection(target, '127.0.0.1');
    client.pipe(socket).pipe(client);
    client.on('error', () => socket.destroy()).once('close', () => open.delete(client));
    socket.on('error', () => client.destroy());
  });
  const cut = (): void => open.forEach((client) => client.destroy());
  await once(server.listen(0), 'listening');
  t.teardown(() => {
    cut();
    server.close();
  });
  const use = (certificate: Certificate): void => {
    server.setSecureContext(read(certificate));
    cut();
  };
  return { port: (server.address() as AddressInfo).port, use };
}

async function userHeaders(keys: InitOutput): Promise<Record<string, string>> {
  return { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': await userToken(keys, 'ann') };
}

/** Uploads a file that is too large for the cache of small ones. */
async function upload({ url }: Server, keys: InitOutput): Promise<Response> {
  const form = new FormData();
  form.append('file', new Blob([wav(80)], { type: 'audio/wav' }), 'a.wav');
  const headers = await userHeaders(keys);
  return fetch(`${url}/api/v1/upload`, { method: 'POST', headers, body: form });
}

t.test('a bucket beside a node', { skip: skipWithout('openssl'), timeout: 120_000 }, async (t) => {
  const { right, wrong, trusted } = certificatesOf(t);
  const s3 = await S3Server.start(t);
  s3.keys.current = { id: 'id', secret: PASSWORD };
  const tls = await startTls(t, s3.port, right);
  const blobs = { url: 's3://test-bucket/files', endpoint: `https://localhost:${tls.port}`, region: 'garage' };
  const dir = tempFolder(t);
  const keys = await newFolder(dir);
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ blobs: { ...blobs, pathStyle: true }, storage: { minFreeMb: 0 } }),
  );
  const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: PASSWORD, NODE_EXTRA_CA_CERTS: trusted };
  const server = await startServer(t, dir, ['--workers', '1'], { env });
  const stored = await upload(server, keys);
  t.equal(stored.status, 200);
  const { id } = (await stored.json()) as { id: string };
  const url = `${server.url}/files/${keys.environment.id}/${id}`;
  const headers = await userHeaders(keys);
  const read = async (): Promise<number> => (await fetch(url, { headers })).status;
  t.equal(await read(), 200);
  for (const certificate of wrong) {
    tls.use(certificate);
    t.equal(await read(), 503);
    t.equal((await upload(server, keys)).status, 503);
    await until(async () => (await checks(server))['files'] === 'failed');
    t.match(await checks(server), { store: 'ok' });
  }
  t.match(server.errors(), /certificate has expired|CERT_HAS_EXPIRED/);
  tls.use(right);
  await until(async () => (await read()) === 200);
  t.equal((await upload(server, keys)).status, 200);
  await until(async () => (await checks(server))['files'] === 'ok');
  t.equal(await server.end(), 0);
  t.notMatch(server.errors(), PASSWORD);
});
