import t from 'tap';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startService } from '../helpers/service.ts';

// Versions (docs/api.md, "Versions").

const service = await startService(t);
const tenant = await service.tenant('versions');

t.test('The API version is a path prefix: /api/v1. All REST endpoints are under it', async (t) => {
  for (const { method, path, operationId } of apiRoutes) {
    const filled = path.replaceAll(/:\w+/g, 'x');
    const under = await tenant.request(method, filled, { key: null });
    t.not(under.headers.get('x-error-code'), 'route_not_found', `${operationId} is under /api/v1`);
    for (const elsewhere of [
      `/${filled}`,
      `//api${filled}`,
      `//api/v2${filled}`,
      `//API/v1${filled}`,
      `//api/v1.0${filled}`,
    ]) {
      const answer = await tenant.request<{ error: string }>(
        method,
        elsewhere.startsWith('//') ? elsewhere : `/${elsewhere}`,
      );
      t.equal(answer.status, 404, elsewhere);
      t.strictSame(Object.keys(answer.json), ['error']);
    }
  }
});

t.test('File serving at /files is outside the prefix', async (t) => {
  t.equal(
    (await tenant.request('GET', `/files/${tenant.environment.id}/x`)).headers.get('x-error-code'),
    'route_not_found',
  );
  t.equal(
    (await tenant.request('GET', `//files/${tenant.environment.id}/x`, { key: null })).status,
    401,
    'it wants its credentials',
  );
});

t.test('health is outside the prefix, for everybody', async (t) => {
  for (const path of ['/livez', '/readyz', '/healthz']) {
    t.equal((await tenant.request('GET', `/${path}`, { key: null })).status, 200, path);
    t.equal((await tenant.request('GET', path)).status, 404, `/api/v1${path}`);
  }
});

t.test('a trailing slash is the same route', async (t) => {
  for (const path of ['/rooms', '/rooms/x/threads', '/users', '/openapi.json', '/events']) {
    const answer = await tenant.request('GET', `${path}/`);
    t.equal(answer.status, 200, path);
    t.equal(answer.text, (await tenant.request('GET', path)).text);
  }
});

t.test('the document of this version names every route', async (t) => {
  const { json } = await tenant.request<{
    openapi: string;
    paths: Record<string, Record<string, { operationId: string }>>;
  }>('GET', '/openapi.json', { key: null });
  t.match(json.openapi, /^3\.1\./);
  const described = Object.entries(json.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.operationId !== undefined)
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  for (const { method, path } of apiRoutes)
    t.ok(
      described.some((line) => line.endsWith(path.replaceAll(/:(\w+)/g, '{$1}')) && line.startsWith(`${method} `)),
      `${method} ${path}`,
    );
});
