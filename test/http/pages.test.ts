import t from 'tap';
import { CollabError } from '../../src/model/errors.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { MemoryBlobs } from '../doubles/memory-blobs.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';

t.test('health is reported without credential, limit or cause', async (t) => {
  const server = await startTestServer(t, { flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '1' } });
  for (const path of ['//readyz', '//healthz']) {
    const { status, json, headers } = await server.request('GET', path, { key: null });
    t.equal(status, 200);
    t.strictSame(json, { status: 'ok', checks: { store: 'ok', disk: 'ok', draining: false } });
    t.equal(headers.get('cache-control'), 'no-store');
    t.equal(headers.get('ratelimit'), null);
  }
  t.strictSame((await server.request('GET', '//livez', { key: null })).json, { status: 'ok' });
});

t.test('a draining process is alive and not ready', async (t) => {
  const server = await startTestServer(t);
  server.status.draining = true;
  t.equal((await server.request('GET', '//livez')).status, 200);
  const { status, json } = await server.request('GET', '//readyz');
  t.equal(status, 503);
  t.strictSame(json, { status: 'unavailable', checks: { store: 'ok', disk: 'ok', draining: true } });
});

t.test('a process whose store or folder fails is not ready', async (t) => {
  const first = await startTestServer(t);
  const failing = new Proxy(first.ctx.store, {
    get: (target, name) => {
      if (name === 'probe') return () => Promise.reject(new Error('/secret/path is gone'));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const server = await startTestServer(t, {
    store: failing,
    environment: first.environment,
    flags: { dataDir: '/does/not/exist' },
  });
  const { status, text } = await server.request('GET', '//readyz');
  t.equal(status, 503);
  t.equal(text, '{"status":"unavailable","checks":{"store":"failed","disk":"failed","draining":false}}');
});

t.test('a process whose files the disk refuses is not ready, however much of the disk is free', async (t) => {
  const first = await startTestServer(t);
  for (const [refuses, disk] of [
    [{ stage: new CollabError('storage_full', 'full') }, 'full'],
    [{ stage: new Error('EACCES') }, 'failed'],
    [{ isRetained: new Error('EACCES') }, 'failed'],
  ] as const) {
    const blobs = new Proxy(new MemoryBlobs(), {
      get: (target, name) => {
        const error = (refuses as Readonly<Record<string | symbol, Error>>)[name];
        const value: unknown = Reflect.get(target, name);
        if (error !== undefined) return () => Promise.reject(error);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const server = await startTestServer(t, { store: first.ctx.store, blobs, environment: first.environment });
    const { status, json } = await server.request('GET', '//readyz');
    t.equal(status, 503);
    t.strictSame(json, { status: 'unavailable', checks: { store: 'ok', disk, draining: false } });
  }
});

t.test('health is checked once a second at most, and a failure is still reported', async (t) => {
  const first = await startTestServer(t);
  const clock = new ManualClock(0);
  let probes = 0;
  let works = true;
  const store = new Proxy(first.ctx.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== 'probe') return typeof value === 'function' ? value.bind(target) : value;
      return () => {
        probes += 1;
        return works ? Promise.resolve() : Promise.reject(new Error('gone'));
      };
    },
  });
  const server = await startTestServer(t, { store, clock, environment: first.environment });
  const ask = async (): Promise<number[]> => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => server.request('GET', n % 2 === 0 ? '//readyz' : '//healthz')),
    );
    return [...new Set(answers.map(({ status }) => status))];
  };
  t.strictSame(await ask(), [200]);
  t.strictSame(await ask(), [200]);
  t.equal(probes, 1);
  works = false;
  clock.advance(999);
  t.strictSame(await ask(), [200]);
  clock.advance(1);
  t.strictSame(await ask(), [503], 'a failure is reported after a second');
  t.equal(probes, 2);
  works = true;
  clock.advance(1_000);
  t.strictSame(await ask(), [200], 'and so is its end');
  server.status.draining = true;
  t.strictSame(await ask(), [503], 'draining is reported at once');
  t.equal(probes, 3);
});

t.test('the demo page is served only if it is configured', async (t) => {
  const demo = {
    files: {
      '/': { type: 'text/html; charset=utf-8', text: '<!doctype html><title>Demo</title>', framed: false },
      '/demo/demo.js': { type: 'text/javascript; charset=utf-8', text: 'let a;', framed: false },
      '/demo/demo.css': { type: 'text/css; charset=utf-8', text: 'p{}', framed: false },
    },
    session: (userId: string) =>
      userId === 'ann'
        ? Promise.resolve('{"userId":"ann"}')
        : Promise.reject(new CollabError('invalid_request', 'user must be one of ann')),
  };
  const on = await startTestServer(t, { demo, flags: { demo: 'true' } });
  const page = await on.request('GET', '//');
  t.equal(page.text, demo.files['/'].text);
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  t.match(page.headers.get('content-security-policy'), /default-src 'self'/);
  t.equal((await on.request('GET', '//demo/demo.js')).headers.get('content-type'), 'text/javascript; charset=utf-8');
  t.equal((await on.request('GET', '//demo/demo.css')).text, 'p{}');
  t.strictSame((await on.request('GET', '//demo/session?user=ann')).json, { userId: 'ann' });
  const refused = await on.request('GET', '//demo/session');
  t.equal(refused.status, 400);
  t.strictSame(refused.json, { error: 'user must be one of ann' });

  const hosts = async (server: TestServer, host: string): Promise<number> => {
    const connection = await server.connect();
    await connection.send(`GET /demo/session?user=ann HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const { status, headers } = await connection.answer();
    t.equal(status === 200 ? undefined : headers['x-error-code'], status === 200 ? undefined : 'forbidden');
    return status;
  };
  for (const host of [
    'localhost',
    'localhost:8787',
    'LOCALHOST:1',
    'demo.localhost',
    '127.0.0.1:8787',
    '[::1]:8787',
    '192.168.1.5',
  ])
    t.equal(await hosts(on, host), 200, host);
  for (const host of [
    'evil.example',
    'evil.example:8787',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '',
    'comments.example.com',
  ])
    t.equal(await hosts(on, host), 403, host);
  const named = await startTestServer(t, {
    demo,
    flags: { demo: 'true', publicUrl: 'https://comments.example.com:8443/base' },
  });
  t.equal(await hosts(named, 'comments.example.com:8443'), 200);
  t.equal(await hosts(named, 'evil.example'), 403);

  const off = await startTestServer(t, { demo });
  for (const path of ['//', '//demo/demo.js', '//demo/session?user=ann'])
    t.equal((await off.request('GET', path)).status, 404, path);
});

t.test(
  'the API reference is served complete and compressed, with an ETag and a policy that allows nothing else',
  async (t) => {
    const server = await startTestServer(t, { flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '1' } });
    const page = await server.request('GET', '//docs', { key: null });
    t.equal(page.status, 200);
    const parts = [...page.text.matchAll(/(?:href|src)="(docs\/[^"]+)"/g)].map(([, path]) => `/${path}`);
    t.equal(parts.length, 5);
    t.notMatch(
      page.text,
      /(?:href|src)="(?!docs\/|api\/v1\/)/,
      'nothing from another host, and nothing that a path of a proxy would change',
    );
    for (const path of ['/docs', ...parts]) {
      const { status, headers } = await server.request('GET', `/${path}`, {
        key: null,
        headers: { 'Accept-Encoding': 'gzip' },
      });
      t.equal(status, 200, path);
      t.match(
        headers.get('content-security-policy'),
        /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';/,
      );
      t.equal(headers.get('x-content-type-options'), 'nosniff');
      const again = await server.request('GET', `/${path}`, {
        key: null,
        headers: { 'If-None-Match': headers.get('etag') ?? '' },
      });
      t.equal(again.status, 304, path);
      t.equal(again.text, '');
    }
    const viewer = await server.request('GET', '//docs/swagger-ui-bundle.js', {
      key: null,
      headers: { 'Accept-Encoding': 'gzip' },
    });
    t.equal(viewer.headers.get('content-encoding'), 'gzip');
    t.match(viewer.text, /SwaggerUIBundle/);
    t.equal((await server.request('GET', '//docs/../package.json')).status, 404);
    // Its references are relative: from there they would lead to /docs/docs.
    t.match(await server.request('GET', '//docs/', { key: null }), { status: 308, text: '' });
    t.equal(
      (await server.request('GET', '//docs/')).headers.get('location'),
      '../docs',
      'also below a path of a proxy',
    );
  },
);

t.test('without docs there is no API reference', async (t) => {
  const server = await startTestServer(t, { flags: { docs: 'false' } });
  for (const path of ['//docs', '//docs/page.js']) t.equal((await server.request('GET', path)).status, 404, path);
});
