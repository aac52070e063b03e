import { rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { signedHeaders } from '../../src/adapters/s3/client/signature.ts';
import { findProvider } from '../../src/adapters/s3/credentials/find-provider.ts';
import { profileRegion } from '../../src/adapters/s3/credentials/profile.ts';
import type { Environment } from '../../src/adapters/s3/credentials/services.ts';
import { type Credentials, CredentialSource } from '../../src/adapters/s3/credentials/source.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { s3Trial } from '../helpers/s3-blobs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const MINUTE = 60_000;
const bare: Environment = { AWS_SHARED_CREDENTIALS_FILE: '/dev/null', AWS_CONFIG_FILE: '/dev/null' };

/** A service that gives out keys; it answers with what `answer` returns, a status or a text. */
async function service(t: Test, answer: (request: IncomingMessage, body: string) => number | string): Promise<string> {
  const http = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const answered = answer(request, body);
      if (typeof answered === 'number') response.writeHead(answered).end();
      else response.end(answered);
    });
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => {
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

const load = async (env: Environment): Promise<Credentials> =>
  (await findProvider({ ...bare, ...env }, 'eu-west-1')).load();
const keysText = (id: string, expiresAt: number): string =>
  JSON.stringify({
    AccessKeyId: id,
    SecretAccessKey: 'secret',
    Token: `token of ${id}`,
    Expiration: new Date(expiresAt).toISOString(),
  });

t.test('signatures are those of the manual of Amazon S3', async (t) => {
  const keys = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  const host = 'examplebucket.s3.amazonaws.com';
  const cases = [
    [
      'GET',
      '/test.txt',
      {},
      { host, range: 'bytes=0-9' },
      empty,
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      'GET',
      '/',
      { lifecycle: '' },
      { host },
      empty,
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ],
    [
      'GET',
      '/',
      { 'max-keys': '2', prefix: 'J' },
      { host },
      empty,
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ],
    [
      'PUT',
      '/test%24file.text',
      {},
      { host, date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
  ] as const;
  for (const [method, path, query, headers, bodySha256, signature] of cases) {
    const signed = signedHeaders(
      { method, path, query, headers, bodySha256 },
      keys,
      'us-east-1',
      Date.UTC(2013, 4, 24),
    );
    t.match(signed['authorization'], new RegExp(`Signature=${signature}$`), `${method} ${path}`);
  }
});

t.test('keys come from variables, or a profile, whose files are read anew', async (t) => {
  const variables = { AWS_ACCESS_KEY_ID: 'v', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: '' };
  t.same(await load(variables), { accessKeyId: 'v', secretAccessKey: 's', sessionToken: undefined });
  const folder = tempFolder(t);
  const [credentials, config] = [join(folder, 'credentials'), join(folder, 'config')];
  writeFileSync(
    credentials,
    '[default]\r\naws_access_key_id = d\naws_secret_access_key=ds\n# aws_session_token=x\n[ work ]\naws_access_key_id=w\naws_secret_access_key=a=b+c/\naws_session_token=t\n[broken]\naws_access_key_id=x\n',
  );
  writeFileSync(config, '[profile work]\nregion = eu-central-1\ns3 =\n  region = no\n[profile role]\nrole_arn=arn:x\n');
  const env = { AWS_SHARED_CREDENTIALS_FILE: credentials, AWS_CONFIG_FILE: config };
  t.match(await load(env), { accessKeyId: 'd', secretAccessKey: 'ds' });
  const work = { ...env, AWS_PROFILE: 'work' };
  t.match(await load(work), { accessKeyId: 'w', secretAccessKey: 'a=b+c/', sessionToken: 't' });
  t.equal(await profileRegion(work), 'eu-central-1');
  await t.rejects(load({ ...env, AWS_PROFILE: 'role' }), /the profile role in .* has role_arn, which is not supported/);
  await t.rejects(load({ ...env, AWS_PROFILE: 'broken' }), /has no aws_access_key_id with an aws_secret_access_key/);
  const provider = await findProvider(work, '');
  writeFileSync(credentials, '[work]\naws_access_key_id=new\naws_secret_access_key=s\n');
  t.match(await provider.load(), { accessKeyId: 'new' });
  rmSync(credentials);
  await t.rejects(provider.load(), { name: 'CredentialFailure' });
});

t.test('keys come from a web identity, with the token of the moment', async (t) => {
  const file = join(tempFolder(t), 'token');
  writeFileSync(file, 'first\n');
  let answer: number | string =
    '<AssumeRoleWithWebIdentityResponse><Credentials><AccessKeyId>W</AccessKeyId><SecretAccessKey>s&amp;s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResponse>';
  const bodies: string[] = [];
  const url = await service(t, (_, body) => {
    bodies.push(body);
    return answer;
  });
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: 'arn:aws:iam::1:role/x', AWS_ENDPOINT_URL_STS: url };
  const expiresAt = Date.UTC(2030, 0, 1);
  t.same(await load(env), { accessKeyId: 'W', secretAccessKey: 's&s', sessionToken: 't', expiresAt });
  writeFileSync(file, 'second');
  await load(env);
  t.same(
    bodies.map((body) => new URLSearchParams(body).get('WebIdentityToken')),
    ['first', 'second'],
  );
  answer = 403;
  await t.rejects(load(env), { name: 'CredentialFailure', message: /web identity .*HTTP 403/ });
  answer = 500;
  bodies.length = 0;
  await t.rejects(load(env), { name: 'CredentialFailure', message: /HTTP 500/ });
  t.equal(bodies.length, 3, 'it was tried again');
});

t.test('keys come from the service of a container, to which a token is sent only if it is near', async (t) => {
  const file = join(tempFolder(t), 'token');
  writeFileSync(file, 'of the file');
  const seen: unknown[] = [];
  const url = await service(t, (request) => {
    seen.push(request.headers.authorization);
    return keysText('c', Date.UTC(2030, 0, 1));
  });
  const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'of the variable' };
  t.match(await load(env), { accessKeyId: 'c', sessionToken: 'token of c', expiresAt: Date.UTC(2030, 0, 1) });
  await load({ ...env, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file });
  t.same(seen, ['of the variable', 'of the file']);
  for (const far of ['http://example.com/keys', 'ftp://127.0.0.1/', 'nonsense'])
    await t.rejects(
      load({ ...env, AWS_CONTAINER_CREDENTIALS_FULL_URI: far }),
      /must have https, or http with an address/,
    );
});

t.test('keys come from the role of an instance, by its second version', async (t) => {
  let role = 'my-role\n';
  const url = await service(t, (request) => {
    if (request.url === '/latest/api/token')
      return request.method === 'PUT' && request.headers['x-aws-ec2-metadata-token-ttl-seconds'] === '300'
        ? 'tok'
        : 400;
    if (request.headers['x-aws-ec2-metadata-token'] !== 'tok') return 401;
    const path = '/latest/meta-data/iam/security-credentials/';
    if (request.url === path) return role;
    return request.url === `${path}my-role` ? keysText('i', Date.UTC(2030, 0, 1)) : 404;
  });
  const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: url };
  t.match(await load(env), { accessKeyId: 'i', expiresAt: Date.UTC(2030, 0, 1) });
  role = '';
  await t.rejects(load(env), /^no keys: set AWS_ACCESS_KEY_ID .* \(the role of an EC2 instance: it has none\)$/);
  await t.rejects(load({ ...env, AWS_EC2_METADATA_DISABLED: 'true' }), /no keys: set AWS_ACCESS_KEY_ID/);
});

t.test('keys are replaced before they expire, by one call, and the old ones serve while that fails', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  let [loads, isDown] = [0, false];
  const provider = {
    name: 'a test',
    load: async (): Promise<Credentials> => {
      loads++;
      if (isDown) throw new Error('down');
      return { accessKeyId: `k${loads}`, secretAccessKey: 's', expiresAt: clock.now() + 60 * MINUTE };
    },
  };
  const source = new CredentialSource(provider, clock);
  const current = async (): Promise<string> => (await source.keys()).accessKeyId;
  t.same(await Promise.all([current(), current(), current()]), ['k1', 'k1', 'k1']);
  clock.advance(54 * MINUTE);
  t.equal(await current(), 'k1');
  clock.advance(2 * MINUTE);
  isDown = true;
  t.same([await current(), await current(), loads], ['k1', 'k1', 2], 'not asked with each request');
  clock.advance(MINUTE);
  isDown = false;
  t.equal(await current(), 'k3');
  clock.advance(61 * MINUTE);
  isDown = true;
  await t.rejects(current(), /down/, 'expired');
  isDown = false;
  t.equal(await current(), 'k5');
});

t.test('keys that the store has refused are replaced, and the request is sent again', async (t) => {
  const clock = new ManualClock(Date.now());
  let id = 'one';
  let loads = 0;
  const url = await service(t, () => {
    loads++;
    return keysText(id, Date.now() + 60 * MINUTE);
  });
  const keysOf = (name: string) => ({ id: name, secret: 'secret', token: `token of ${name}` });
  const env = { ...bare, AWS_CONTAINER_CREDENTIALS_FULL_URI: url };
  const { server, blobs } = await s3Trial(t, { env, clock }, keysOf('one'));
  const rotate = (name: string): void => {
    id = name;
    server.keys.current = keysOf(name);
    clock.advance(MINUTE);
  };
  server.bucket.objects.set('test/files/env/a', Buffer.from('x'));
  for (const [name, call] of [
    ['two', () => blobs.environments()],
    ['three', () => blobs.stat('env', 'a')],
  ] as const) {
    rotate(name);
    t.ok(await call(), name);
  }
  server.keys.current = keysOf('others');
  clock.advance(MINUTE);
  loads = 0;
  for (let n = 0; n < 5; n++) await t.rejects(blobs.environments(), { code: 'storage_failed' });
  t.equal(loads, 1, 'the service is left alone');
});
