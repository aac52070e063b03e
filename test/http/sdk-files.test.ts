import { hash } from 'node:crypto';
import t from 'tap';
import { startTestServer } from '../helpers/http.ts';

interface Manifest {
  version: string;
  files: Record<string, { path: string; integrity: string; bytes: number; gzipBytes: number }>;
}

t.test('the SDK is served under a plain name and under one that never changes', async (t) => {
  const server = await startTestServer(t);
  const manifest = await server.request<Manifest>('GET', '//sdk/manifest.json', { key: null });
  t.match(manifest.json, {
    version: String,
    files: { 'collab.js': { path: /^\/sdk\/collab-[0-9a-f]{16}\.js$/, integrity: /^sha384-/ } },
  });
  const { path, integrity, gzipBytes } = manifest.json.files['collab.js'] ?? { path: '', integrity: '', gzipBytes: 0 };
  t.ok(gzipBytes < 12_000);

  const plain = await server.request('GET', '//sdk/collab.js', { key: null });
  t.match(plain, { status: 200 });
  t.equal(plain.headers.get('content-type'), 'text/javascript; charset=utf-8');
  t.equal(plain.headers.get('cache-control'), 'no-cache');
  t.equal(plain.headers.get('access-control-allow-origin'), '*');
  const fixed = await server.request('GET', `/${path}`, { key: null });
  t.equal(fixed.text, plain.text);
  t.equal(fixed.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.equal(`sha384-${hash('sha384', fixed.text, 'base64')}`, integrity);
  t.equal(
    (
      await server.request('GET', '//sdk/collab.js', {
        key: null,
        headers: { 'If-None-Match': plain.headers.get('etag') ?? '' },
      })
    ).status,
    304,
  );
  t.notMatch(plain.text, /sk_\w/, 'nothing in it takes a secret key');
});

t.test('the shared socket is served like it, in a file of its own', async (t) => {
  const server = await startTestServer(t);
  const { json } = await server.request<Manifest>('GET', '//sdk/manifest.json', { key: null });
  const { path, integrity, gzipBytes } = json.files['shared-socket.js'] ?? { path: '', integrity: '', gzipBytes: 0 };
  t.ok(gzipBytes > 0 && gzipBytes < 4_500);
  const fixed = await server.request('GET', `/${path}`, { key: null });
  t.equal(fixed.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.equal(`sha384-${hash('sha384', fixed.text, 'base64')}`, integrity);
  t.equal((await server.request('GET', '//sdk/shared-socket.js', { key: null })).text, fixed.text);
});

t.test('other names below /sdk are not found', async (t) => {
  const server = await startTestServer(t);
  for (const path of [
    '//sdk/other.js',
    '//sdk/..%2fpackage.json',
    '//sdk/constructor',
    '//sdk/',
    '//sdk/collab-0000000000000000.js',
  ]) {
    t.match(await server.request('GET', path, { key: null }), { status: 404, json: { error: String } }, path);
  }
});
