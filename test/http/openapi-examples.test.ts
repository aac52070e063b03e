import t from 'tap';
import { createAdmin } from '../../src/domain/admins/admins.ts';
import { operationExamples } from '../../src/http/openapi/examples/operations.ts';
import { pathExamples } from '../../src/http/openapi/examples/records.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { eventTypes } from '../../src/model/event.ts';
import type { Route } from '../../src/http/api/route.ts';
import { document, isAs, type Media, type Operation, operations, target } from '../helpers/openapi.ts';
import { adminSession, callOf, credentialsFor, seedFor, type Seeds } from '../helpers/route-calls.ts';
import { startService, type Tenant } from '../helpers/service.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

const JSON_TYPE = 'application/json';
/** Operations whose examples show only part of the answer: the document itself. */
const partly = new Set(['openapi.get', 'openapi.getAsyncapi']);

const routeOf = ({ operationId }: Operation): Route => {
  const route = apiRoutes.find((candidate) => candidate.operationId === operationId);
  if (route === undefined) throw new Error(`no route ${operationId}`);
  return route;
};

const successOf = ({ responses }: Operation): [status: string, media: Media][] =>
  Object.entries(responses).flatMap(([status, { content }]) =>
    Number(status) < 300 && content?.[JSON_TYPE] !== undefined ? [[status, content[JSON_TYPE]] as [string, Media]] : [],
  );

t.test('every operation has examples that match its schemas', (t) => {
  for (const operation of operations) {
    const { operationId, requestBody } = operation;
    const sent = requestBody?.content[JSON_TYPE];
    if (sent !== undefined)
      t.ok(sent.example !== undefined && isAs(sent.schema, sent.example), `${operationId}: what is sent`);
    for (const [status, { schema, example }] of successOf(operation))
      t.ok(example !== undefined && isAs(schema, example), `${operationId}: ${status}`);
    for (const { name, in: place, schema, example } of operation.parameters) {
      if (place === 'path') t.type(example, 'string', `${operationId}: ${name} in the path`);
      if (example !== undefined) t.ok(isAs(schema, example), `${operationId}: ${name}`);
    }
  }
  t.strictSame(
    Object.keys(operationExamples).filter((id) => !operations.some(({ operationId }) => operationId === id)),
    [],
    'no example of an operation that does not exist',
  );
  t.end();
});

t.test('every refusal has an example for each code of the operation', (t) => {
  for (const { operationId, responses } of operations) {
    for (const [status, { description, content }] of Object.entries(responses)) {
      if (Number(status) < 400) continue;
      const media = content?.[JSON_TYPE];
      const kinds = [...description.matchAll(/^`(\w+)`: /gm)].map(([, code]) => code ?? '');
      t.strictSame(Object.keys(media?.examples ?? {}), kinds, `${operationId}: ${status}`);
      for (const { $ref } of Object.values(media?.examples ?? {}))
        t.ok(isAs(media?.schema, (target($ref) as { value: unknown }).value), `${operationId}: ${$ref}`);
    }
  }
  t.end();
});

t.test('the schemas of all durable events are in the document, for future webhooks', (t) => {
  const union = document.components['schemas']?.['Event'] as { discriminator: { mapping: Record<string, string> } };
  for (const [type, ref] of Object.entries(union.discriminator.mapping))
    t.match(target(ref), { properties: { type: { const: type }, seq: {}, data: {} } });
  t.equal(Object.keys(union.discriminator.mapping).length, eventTypes.length);
  t.end();
});

/**
 * Whether two values have the same fields with the same types, recursively. A field that is null in one may have a
 * value in the other.
 */
function unlike(actual: unknown, example: unknown, path = ''): string[] {
  if (actual === null || example === null) return [];
  if (Array.isArray(example) && Array.isArray(actual))
    return actual.length === 0 || example.length === 0 ? [] : unlike(actual[0], example[0], `${path}[0]`);
  if (typeof example === 'object' && typeof actual === 'object') {
    const open = /\b(?:metadata|state|limits|users)$/.test(path);
    const keys = open ? [] : [...new Set([...Object.keys(example), ...Object.keys(actual)])];
    const other =
      Object.keys(actual).join() === Object.keys(example).join() || open
        ? []
        : [`${path || 'it'} has ${Object.keys(actual).join()}`];
    return [
      ...other,
      ...keys.flatMap((key) =>
        unlike((actual as Record<string, unknown>)[key], (example as Record<string, unknown>)[key], `${path}.${key}`),
      ),
    ];
  }
  return typeof actual === typeof example ? [] : [`${path} is ${typeof actual}, not ${typeof example}`];
}

t.test('a server answers the examples as the document shows', async (t) => {
  const service = await startService(t, {
    flags: {
      'turn.urls': 'turn:turn.example.com:3478?transport=udp',
      'turn.stunUrls': 'stun:turn.example.com:3478',
      'turn.secret': 'north',
    },
  });
  const login = operationExamples['admin.login']?.body as { email: string; password: string };
  await createAdmin(service.ctx, login.email, login.password);
  await adminSession(service);
  for (const [at, operation] of operations.entries()) {
    const { operationId, method } = operation;
    const route = routeOf(operation);
    const tenant = await service.tenant(
      `docs-${at}`,
      route.operationId === 'p2pState.get' ? { crdt: 'yjs' } : undefined,
    );
    const ids = await makeWorld(tenant, route);
    const headers = await credentialsFor(route, tenant);
    const examples = operation.parameters.filter(({ example }) => example !== undefined);
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(ids[name] ?? pathExamples[name] ?? ''),
    );
    const queries = examples
      .filter(({ in: place }) => place === 'query')
      .map(({ name, example }) =>
        typeof example === 'object' ? (example as Record<string, string>) : { [name]: String(example) },
      );
    const searches = [{}, ...queries, Object.assign({}, ...queries) as Record<string, string>];
    const more = Object.fromEntries(
      examples.filter(({ in: place }) => place === 'header').map(({ name, example }) => [name, String(example)]),
    );
    const body = requestBodyOf(operation, route, ids);
    for (const search of method === 'GET' ? searches : searches.slice(-1)) {
      const query = new URLSearchParams(search).toString();
      const answer = await tenant.request(method, path + (query === '' ? '' : `?${query}`), {
        key: null,
        headers: { ...headers, ...more, ...body.headers },
        body: body.body,
      });
      const [, media] = successOf(operation).find(([status]) => Number(status) === answer.status) ?? [];
      t.ok(
        media !== undefined,
        `${operationId}?${query}: ${answer.status} is in the document ${media === undefined ? answer.text : ''}`,
      );
      t.ok(media === undefined || isAs(media.schema, answer.json), `${operationId}: as the schema says`);
      if (query === '' && media !== undefined && !partly.has(operationId))
        t.strictSame(unlike(answer.json, media.example), [], `${operationId}: as the example shows`);
    }
  }
});

function requestBodyOf(
  operation: Operation,
  route: Route,
  seeds: Seeds,
): { body?: unknown; headers?: Readonly<Record<string, string>> } {
  if (operation.requestBody === undefined) return {};
  const example = operation.requestBody.content[JSON_TYPE]?.example;
  if (example !== undefined) return { body: example };
  const { body, headers } = callOf(route, { ...pathExamples, ...seeds });
  return { body, headers };
}

/**
 * Creates the records of the examples, with the same ids where the client may choose them, and returns the other ids.
 */
async function makeWorld(tenant: Tenant, route: Route): Promise<Seeds> {
  const { body: thread } = operationExamples['threads.create'] ?? {};
  const { body: reply } = operationExamples['comments.create'] ?? {};
  await addUser(tenant, 'ann', operationExamples['users.put']?.body as object);
  await addUser(tenant, 'bob');
  await addThread(tenant, pathExamples['roomId'] ?? '', { ...(thread as object), id: pathExamples['threadId'] });
  await addComment(tenant, pathExamples['threadId'] ?? '', { ...(reply as object), id: pathExamples['commentId'] });
  if (route.operationId.startsWith('p2pState'))
    done(
      200,
      await tenant.request('PUT', `/rooms/${pathExamples['roomId']}/p2p/state`, {
        body: operationExamples['p2pState.put']?.body,
      }),
    );
  if (!/:(?:reactionId|keyId|environmentId|itemId)/.test(route.path)) return {};
  const { reactionId, keyId, environmentId, itemId } = await seedFor(route, tenant);
  return Object.fromEntries(
    Object.entries({ reactionId, keyId, environmentId, itemId }).filter(([, id]) => id !== undefined),
  ) as Seeds;
}
