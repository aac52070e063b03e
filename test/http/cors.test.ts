import t, { type Test } from 'tap';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import { signUserToken } from '../../src/domain/access/tokens.ts';
import { isForBrowsers } from '../../src/http/api/browser-access.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startTestServer, type TestServer } from '../helpers/http.ts';

const ALLOWED =
  'Content-Type, X-Service-Key, X-Service-Token, If-Match, If-None-Match, Range, Idempotency-Key, X-Request-Id';
const EXPOSED =
  'ETag, Link, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, X-Error-Code, Content-Range, Accept-Ranges, Idempotent-Replayed, Collab-Hint';
const STATE = '/rooms/r1/p2p/state';
const PAGE = 'https://app.example.com';

/** The headers that a page sends. */
async function pageHeaders(server: TestServer, origin: string): Promise<Record<string, string>> {
  const { value } = await createKey(server.ctx, server.environment, { kind: 'publishable' });
  const { token } = await signUserToken(server.ctx, server.environment, { userId: 'ann', ttlSeconds: 600 });
  return { 'X-Service-Key': value, 'X-Service-Token': token, Origin: origin };
}

async function preflight({ request }: TestServer, path: string, method = 'GET') {
  return request('OPTIONS', path, {
    key: null,
    headers: {
      Origin: PAGE,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': 'x-service-key',
    },
  });
}

async function allowOnlyPage(server: TestServer): Promise<void> {
  await updateEnvironment(server.ctx, server.environment.id, { settings: { allowedOrigins: [PAGE] } });
}

t.test('a preflight needs no credential and lists exactly what pages may send', async (t) => {
  const server = await startTestServer(t);
  const { status, headers, text } = await preflight(server, STATE, 'PUT');
  t.equal(status, 204);
  t.equal(text, '');
  t.equal(headers.get('access-control-allow-origin'), '*');
  t.equal(headers.get('access-control-allow-methods'), 'GET, HEAD, PUT', 'DELETE is for backends');
  t.equal(headers.get('access-control-allow-headers'), ALLOWED);
  t.notMatch(headers.get('access-control-allow-headers'), /authorization/i, 'a page cannot use a secret key');
  t.equal(headers.get('access-control-max-age'), '7200');
  t.equal(headers.get('access-control-allow-credentials'), null);
  t.equal(headers.get('content-length'), null);
  await allowOnlyPage(server);
  t.equal(
    (await preflight(server, STATE)).headers.get('access-control-allow-origin'),
    '*',
    'the environment is not known yet',
  );
});

t.test('a preflight does not count against the limit', async (t) => {
  const server = await startTestServer(t, { flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '1' } });
  for (let i = 0; i < 3; i++) t.equal((await preflight(server, STATE)).status, 204);
  for (let i = 0; i < 3; i++) t.equal((await preflight(server, '/rooms')).status, 404);
  t.equal((await server.request('GET', '/rooms')).headers.get('ratelimit'), '"default";r=0;t=60');
});

t.test('only routes for browsers have CORS, as the route table says', async (t) => {
  const server = await startTestServer(t);
  for (const path of new Set(apiRoutes.map((route) => route.path))) {
    const methods = apiRoutes
      .filter((route) => route.path === path && isForBrowsers(route))
      .map(({ method }) => method);
    const asked = path.replaceAll(/:\w+/g, 'x');
    const { status, headers } = await preflight(server, asked);
    t.equal(status, methods.length === 0 ? 404 : 204, path);
    t.equal(headers.has('access-control-allow-origin'), methods.length > 0, path);
  }
  for (const route of apiRoutes.filter((candidate) => !isForBrowsers(candidate))) {
    const { headers } = await server.request(route.method, route.path.replaceAll(/:\w+/g, 'x'), {
      key: null,
      headers: { Origin: PAGE },
    });
    t.notOk(headers.has('access-control-allow-origin'), route.operationId);
  }
});

t.test('if no origin is listed, every page may read the response', async (t) => {
  const server = await startTestServer(t);
  const { status, headers } = await server.request('GET', STATE, {
    key: null,
    headers: await pageHeaders(server, PAGE),
  });
  t.equal(status, 200);
  t.equal(headers.get('access-control-allow-origin'), '*');
  t.equal(headers.get('access-control-expose-headers'), EXPOSED);
  t.equal(headers.get('access-control-allow-credentials'), null);
});

t.test('a listed origin is echoed; any other is refused with the reason', async (t) => {
  const server = await startTestServer(t);
  await allowOnlyPage(server);
  const own = await server.request('GET', STATE, { key: null, headers: await pageHeaders(server, PAGE) });
  t.equal(own.status, 200);
  t.equal(own.headers.get('access-control-allow-origin'), PAGE);
  t.equal(own.headers.get('access-control-expose-headers'), EXPOSED);
  t.match(own.headers.get('vary'), /\bOrigin\b/);

  for (const origin of ['https://evil.example.com', 'http://app.example.com', `${PAGE}.evil.com`, 'null']) {
    const { status, headers, json } = await server.request('GET', STATE, {
      key: null,
      headers: await pageHeaders(server, origin),
    });
    t.equal(status, 403, origin);
    t.equal(headers.get('x-error-code'), 'origin_not_allowed');
    t.strictSame(json, { error: `Pages of ${origin} may not connect to this environment` });
  }
  const { Origin: _, ...noPage } = await pageHeaders(server, PAGE);
  const native = await server.request('GET', STATE, { key: null, headers: noPage });
  t.equal(native.status, 200, 'an app sends no origin');
  t.equal(native.headers.get('access-control-allow-origin'), null);
  t.match(native.headers.get('vary'), /\bOrigin\b/);
  t.equal((await server.request('GET', STATE)).status, 200, 'neither does a backend');
});

t.test('a refusal can be read by the page', async (t) => {
  const server = await startTestServer(t, { flags: { 'rateLimit.exempt': '', 'rateLimit.perMinute': '5' } });
  await allowOnlyPage(server);
  const page = await pageHeaders(server, PAGE);
  const refuse = async (
    headers: Record<string, string>,
    path: string,
    status: number,
    origin: string,
  ): Promise<void> => {
    const answer = await server.request('GET', path, { key: null, headers });
    t.equal(answer.status, status);
    t.equal(answer.headers.get('access-control-allow-origin'), origin, `${status}`);
    t.equal(answer.headers.get('access-control-expose-headers'), EXPOSED);
  };
  await refuse({ Origin: PAGE }, STATE, 401, '*');
  await refuse({ ...page, 'X-Service-Token': 'x' }, STATE, 401, '*');
  await refuse({ ...page, Origin: 'https://evil.example.com' }, STATE, 403, '*');
  await refuse(page, `${STATE}?sv=%20`, 400, PAGE);
  await server.request('GET', '/rooms');
  await refuse(page, STATE, 429, '*');
});

t.test('a confined page sees the answer of its own environment only', async (t: Test) => {
  const server = await startTestServer(t);
  await allowOnlyPage(server);
  const { headers } = await server.request('GET', STATE, { headers: { Origin: 'https://evil.example.com' } });
  t.equal(
    headers.get('access-control-allow-origin'),
    null,
    'a page of another origin cannot read the answer to a secret key',
  );
});
