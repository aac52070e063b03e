import t from 'tap';
import { openapiDocument } from '../../src/http/openapi/openapi.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { startTestServer } from '../helpers/http.ts';

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: object;
  readonly components: Readonly<
    Record<'schemas' | 'headers' | 'examples' | 'securitySchemes', Readonly<Record<string, unknown>>>
  >;
}
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly security?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

const document = JSON.parse(JSON.stringify(openapiDocument())) as Document;

/** The operations of a path, without its other fields. */
const operationsOf = (item: Readonly<Record<string, Operation>>) =>
  Object.entries(item).filter(([method]) => method !== 'servers');

t.test('every route is described under a unique name', (t) => {
  t.equal(document.openapi, '3.1.0');
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    operationsOf(operations).map(([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`),
  );
  t.strictSame(described, [...new Set(described)]);
  const routes = apiRoutes.map(
    ({ method, path, operationId }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')} ${operationId}`,
  );
  t.strictSame(
    described.toSorted(),
    [...routes, 'GET /files/{envId}/{fileId} files.get'].toSorted(),
    'files are outside of the API',
  );
  t.equal(new Set(apiRoutes.map(({ operationId }) => operationId)).size, apiRoutes.length);
  t.end();
});

t.test('parameters, bodies and refusals match the route', (t) => {
  const create = document.paths['/rooms/{roomId}/threads']?.['post'];
  t.match(create?.parameters, [
    { name: 'roomId', in: 'path' },
    { name: 'Idempotency-Key', in: 'header' },
  ]);
  t.match(create?.requestBody, {
    required: true,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/ThreadCreate' } } },
  });
  t.strictSame(Object.keys(create?.responses ?? {}), ['201', '400', '401', '403', '409', '413', '429', '500', '503']);
  t.strictSame(document.paths['/openapi.json']?.['get']?.security, []);
  t.equal(document.paths['/rooms']?.['get']?.security, undefined);
  t.end();
});

t.test('every route with a parameter in its path lists the refusal of one that is not percent-encoded', (t) => {
  for (const { path, method, operationId } of apiRoutes) {
    if (!path.includes(':')) continue;
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
    t.ok(operation?.responses['400'] !== undefined, operationId);
  }
  t.end();
});

t.test('every reference resolves, and every named schema is used', (t) => {
  const text = JSON.stringify(document);
  const withSchemaRefs = new Set(
    [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([\w-]+)"/g)].map(([, group, name]) => `${group} ${name}`),
  );
  const there = (['schemas', 'headers', 'examples'] as const).flatMap((group) =>
    Object.keys(document.components[group]).map((name) => `${group} ${name}`),
  );
  t.strictSame([...withSchemaRefs].toSorted(), there.toSorted());
  t.notMatch(text, /"~/, 'nothing internal to the schema library is included');
  t.end();
});

t.test('the server serves the document without a credential', async (t) => {
  const { request } = await startTestServer(t);
  const { status, json } = await request('GET', '/openapi.json', { key: null });
  t.equal(status, 200);
  t.strictSame(json, document);
});

t.test('with publicUrl the document names the server as clients know it', async (t) => {
  const server = await startTestServer(t, { flags: { publicUrl: 'https://example.com/comments' } });
  const { json } = await server.request<{ servers: { url: string }[] }>('GET', '/openapi.json', { key: null });
  t.match(json.servers, [{ url: 'https://example.com/comments/api/v1' }]);
});
