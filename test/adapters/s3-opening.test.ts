import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { locationOf } from '../../src/adapters/s3/location.ts';
import { openS3Blobs, type S3BlobsOptions } from '../../src/adapters/s3/open.ts';
import { EngineError } from '../../src/ports/engine-error.ts';
import { type Fault, S3Server } from '../doubles/s3/server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const noKeys = {
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
};

/** Opens blobs that must be refused, and returns how. */
async function refusalOf(t: Test, server: S3Server, changes: Partial<S3BlobsOptions>): Promise<EngineError> {
  const staging = { folder: join(tempFolder(t), 'staging'), minFreeBytes: 0 };
  const bounds = { backoffMs: 1, idleMs: 60_000, maxAttempts: 2 };
  const opening = openS3Blobs({ ...server.options, staging, bounds, ...changes });
  const error: unknown = await opening.then(
    (blobs) => blobs.close(),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EngineError)) throw new Error('the blobs were opened, or failed otherwise', { cause: error });
  t.equal(error.option, 'blobs.url');
  t.notMatch(error.message, /\n|test\/secret|hunter2/, 'one line without a secret');
  return error;
}

t.test('options that are invalid are refused with what is wrong', async (t) => {
  const server = await S3Server.start(t);
  const cases: readonly [Partial<S3BlobsOptions>, RegExp][] = [
    [{ url: 'https://bucket.s3.amazonaws.com' }, /must be s3:\/\/bucket or s3:\/\/bucket\/prefix/],
    [{ url: 's3://key:hunter2@bucket' }, /without keys: set AWS_ACCESS_KEY_ID/],
    [{ url: 's3://' }, /the name of the bucket must have 3 to 255/],
    [{ url: 's3://a b' }, /the name of the bucket/],
    [{ url: 's3://bucket/../x' }, /the prefix must consist of/],
    [{ url: `s3://bucket/${'x/'.repeat(200)}` }, /the prefix must have at most 256 characters, not 400/],
    [{ url: 's3://bucket?region=x' }, /must be s3/],
    [{ endpoint: 'localhost:9000' }, /blobs\.endpoint must be a URL with https or http/],
    [{ endpoint: 'ftp://localhost' }, /blobs\.endpoint must be a URL/],
    [{ endpoint: 'http://key:hunter2@localhost' }, /blobs\.endpoint must have no user/],
    [{ region: 'eu west' }, /blobs\.region must be the name of a region/],
    [{ env: { ...noKeys } }, /no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE/],
    [{ env: { ...noKeys, AWS_ACCESS_KEY_ID: 'x' } }, /AWS_SECRET_ACCESS_KEY is not set, but its counterpart is/],
    [{ env: { ...noKeys, AWS_PROFILE: 'work' } }, /AWS_PROFILE names work, which is not in \/dev\/null/],
  ];
  for (const [changes, message] of cases) {
    const error = await refusalOf(t, server, changes);
    t.match(error.message, message);
    t.equal(error.retry, false);
  }
  t.equal(server.seen.length, 0);
});

t.test('a store that refuses is reported with what to do about it', async (t) => {
  const server = await S3Server.start(t);
  const refuse = (status: number, code: string, extra?: string): Fault => ({
    kind: 'refuse',
    status,
    code,
    ...(extra === undefined ? {} : { extra }),
  });
  const { env } = server;
  const redirect = refuse(301, 'PermanentRedirect', '<Endpoint>x</Endpoint><Region>eu-west-1</Region>');
  const onWrite = ({ method }: { method: string }): Fault | null =>
    method === 'PUT' ? refuse(403, 'AccessDenied') : null;
  const cases: readonly [
    Partial<S3BlobsOptions>,
    (typeof server)['fault'] | null,
    message: string | RegExp,
    retry?: true,
  ][] = [
    [
      { url: 's3://another-bucket' },
      null,
      /bucket another-bucket: NoSuchBucket, no such bucket: create the bucket, or mend its name$/,
    ],
    [{ region: 'us-east-1' }, null, /AuthorizationHeaderMalformed, .*: set blobs\.region to garage, not us-east-1$/],
    [{}, () => redirect, /PermanentRedirect: set blobs\.region to eu-west-1, not garage$/],
    [{ env: { ...env, AWS_ACCESS_KEY_ID: 'x' } }, null, /InvalidAccessKeyId.*: check AWS_ACCESS_KEY_ID$/],
    [
      { env: { ...env, AWS_SECRET_ACCESS_KEY: 'hunter2' } },
      null,
      /SignatureDoesNotMatch.*: check AWS_SECRET_ACCESS_KEY/,
    ],
    [{}, () => refuse(403, 'AccessDenied'), /AccessDenied: allow s3:ListBucket on the bucket/],
    [{}, onWrite, /AccessDenied: allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject/],
    [{}, () => refuse(403, 'RequestTimeTooSkewed'), /RequestTimeTooSkewed: set the clock of this machine$/],
    [{}, () => refuse(400, 'ExpiredToken'), /ExpiredToken: get new keys \(AWS_SESSION_TOKEN\)$/],
    [{}, () => refuse(404, 'HTTP 404'), /check blobs\.endpoint and blobs\.pathStyle$/],
    [{}, () => refuse(503, 'SlowDown'), /it is not ready \(SlowDown\)$/, true],
    [
      { bounds: { idleMs: 250, maxAttempts: 1 } },
      () => ({ kind: 'hang' }),
      /no answer \(nothing came within 0\.3 s\): check that it runs, and blobs\.endpoint$/,
      true,
    ],
    [{}, () => ({ kind: 'garbage' }), /no answer \(the answer is no whole ListBucketResult\)/, true],
    [
      { endpoint: 'http://127.0.0.1:1' },
      null,
      /^blobs\.url: 127\.0\.0\.1:1, bucket test-bucket: no answer \(connect ECONNREFUSED/,
      true,
    ],
    [{ endpoint: 'http://no-such-host.invalid' }, null, /no answer \(getaddrinfo /, true],
    [
      { endpoint: `https://127.0.0.1:${server.port}` },
      null,
      /it does not speak TLS as expected .*: check the port, and http or https, of/,
    ],
  ];
  for (const [changes, fault, message, retry = false] of cases) {
    server.fault = fault ?? (() => null);
    const error = await refusalOf(t, server, changes);
    t.match(error.message, message);
    t.equal(error.retry, retry, error.message);
  }
});

t.test('a clock that is wrong is reported', async (t) => {
  const server = await S3Server.start(t);
  server.clockAhead = 3_600_000;
  t.match((await refusalOf(t, server, {})).message, /RequestTimeTooSkewed, clock: set the clock of this machine$/);
});

t.test('a certificate that is not trusted is refused, at once and for good', async (t) => {
  const pem = readFileSync(new URL('../fixtures/self-signed.pem', import.meta.url));
  const https = createServer({ key: pem, cert: pem }, () => t.fail('a request was sent')).listen(0, '127.0.0.1');
  t.teardown(() => https.close());
  await once(https, 'listening');
  const endpoint = `https://127.0.0.1:${(https.address() as AddressInfo).port}`;
  const error = await refusalOf(t, await S3Server.start(t), { endpoint });
  t.match(error.message, /its certificate is not trusted \(self-signed certificate.*\): set NODE_EXTRA_CA_CERTS/);
  t.equal(error.retry, false);
});

t.test('the host and the path of a bucket', async (t) => {
  const place = (endpoint: string, pathStyle: 'auto' | boolean, bucket = 'files', region = ''): string => {
    const found = locationOf({ url: `s3://${bucket}/a//b/`, endpoint, region, pathStyle }, 'eu-west-3');
    const { secure, hostname, port } = found.endpoint;
    return `${secure} ${hostname} ${port} ${found.host} ${found.basePath} ${found.prefix} ${found.region}`;
  };
  const amazon = 's3.eu-west-3.amazonaws.com';
  t.equal(place('', 'auto'), `true files.${amazon} 443 files.${amazon} / a/b/ eu-west-3`);
  t.equal(place('', 'auto', 'my.files'), `true ${amazon} 443 ${amazon} /my.files/ a/b/ eu-west-3`);
  t.equal(place('', true, 'files', 'cn-north-1').split(' ')[1], 's3.cn-north-1.amazonaws.com.cn');
  t.equal(place('http://[::1]:3900', 'auto'), 'false ::1 3900 [::1]:3900 /files/ a/b/ eu-west-3');
  t.equal(
    place('https://s3.example.com/', false),
    'true files.s3.example.com 443 files.s3.example.com / a/b/ eu-west-3',
  );
  t.equal(place('https://x.supabase.co/storage/v1/s3', 'auto').split(' ')[4], '/storage/v1/s3/files/');
});
