import fc from 'fast-check';
import t from 'tap';
import { Check } from 'typebox/value';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { errorKinds } from '../../src/model/errors.ts';
import { messages } from '../../src/realtime/messages/messages.ts';
import type { Route } from '../../src/http/api/route.ts';
import {
  bodyOf,
  callOf,
  credentialsFor,
  pace,
  sampleOf,
  type SchemaNode,
  seedFor,
  type Seeds,
  titleOf,
} from '../helpers/route-calls.ts';
import { anyCharacter } from '../helpers/any-character.ts';
import { CRASH_FACTOR } from '../helpers/crash-factor.ts';
import { startService } from '../helpers/service.ts';

// Whatever is sent, the answer is one of those that docs/openapi.json describes: in time, never a 500, and a refusal
// has its shape.

const RUNS = 25 * CRASH_FACTOR;
const TIMEOUT_MS = 10_000;

const service = await startService(t);
const tenant = await service.tenant('properties', { requireKnownUsers: false });

const hazards = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'length', '', 'id', 'then'];
const anyJson = fc.jsonValue({ maxDepth: 3, stringUnit: anyCharacter });
const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  fc.constantFrom(
    ...hazards,
    '\ud800',
    '\u0000',
    '\uffff',
    '😀'.repeat(64),
    ' '.repeat(300),
    '../..',
    '%2e%2e',
    "'; DROP TABLE",
    '~',
  ),
);
const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(-0, 1e308, 5e-324, Number.MAX_SAFE_INTEGER + 2, Number.NaN),
);

/** Bodies near to what the schema wants: some fields right, some of the right type, some anything, some missing. */
function nearly(schema: SchemaNode, name: string, seeds: Seeds): fc.Arbitrary<unknown> {
  const right = fc.constant(sampleOf(schema, name, seeds));
  const typed: fc.Arbitrary<unknown> =
    schema.anyOf === undefined
      ? ofType(schema, seeds)
      : fc.oneof(...schema.anyOf.map((choice) => ofType(choice, seeds)));
  return fc.oneof({ weight: 4, arbitrary: right }, { weight: 3, arbitrary: typed }, { weight: 1, arbitrary: anyJson });
}

function ofType(schema: SchemaNode, seeds: Seeds): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'object': {
      const known = Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([field, inner]) => [field, nearly(inner, field, seeds)]),
      );
      const more = fc.dictionary(
        fc.oneof(anyText, fc.constantFrom(...hazards)),
        fc.oneof(anyText, anyNumber, fc.boolean(), anyJson),
        { maxKeys: 4 },
      );
      return fc
        .tuple(fc.record(known, { requiredKeys: [] }), more)
        .map(([fields, others]) => ({ ...others, ...fields }));
    }
    case 'array':
      return fc.array(nearly(schema.items ?? {}, '', seeds), { maxLength: 60 });
    case 'string':
      return anyText;
    case 'boolean':
      return fc.boolean();
    default:
      return anyNumber;
  }
}

/**
 * Sends a request and checks that its answer is documented and in time. Throws what is wrong, for fast-check to shrink.
 */
async function answersWell(
  route: Route,
  path: string,
  options: { body?: unknown; headers?: Readonly<Record<string, string>> },
): Promise<void> {
  const { method } = route;
  const late = new AbortController();
  const timeout = setTimeout(() => late.abort(), TIMEOUT_MS);
  const hang = new Promise<never>((_, reject) =>
    late.signal.addEventListener('abort', () => reject(new Error(`no answer within ${TIMEOUT_MS} ms`))),
  );
  try {
    const { status, text, headers, json } = await Promise.race([
      tenant.request(method, path, { key: null, ...options }),
      hang,
    ]);
    if (status >= 500) throw new Error(`${status} ${text}`);
    if (status < 400) {
      const schema = route.responses[status];
      if (schema === undefined ? status !== 204 && status !== 304 : json !== undefined && !Check(schema, json))
        throw new Error(`not as documented: ${status} ${text.slice(0, 1000)}`);
      return;
    }
    if (![400, 401, 403, 404, 409, 412, 413, 429].includes(status))
      throw new Error(`${status} is no documented status`);
    const refusal = json as { error?: unknown } | null;
    if (typeof refusal?.error !== 'string' || refusal.error === '' || Object.keys(refusal).length !== 1)
      throw new Error(`not {error}: ${text}`);
    if (refusal.error.length > 1_000) throw new Error(`a message of ${refusal.error.length} characters`);
    if (
      /\bat .*:\d+|node_modules|\.ts\b|undefined|\[object/.test(refusal.error) &&
      !JSON.stringify(options.body ?? '').includes(refusal.error)
    )
      throw new Error(`leaks: ${text}`);
    if (headers.get('x-error-code') === null) throw new Error('no X-Error-Code');
  } finally {
    clearTimeout(timeout);
  }
}

for (const route of apiRoutes) {
  const schema = bodyOf(route);
  if (schema === undefined) continue;
  t.test(`${titleOf(route)} | any body`, async () => {
    const seeds = await seedFor(route, tenant);
    const { path } = callOf(route, seeds);
    const headers = await credentialsFor(route, tenant);
    const send = (body: unknown) => {
      pace(route, service);
      return answersWell(route, path, { body, headers });
    };
    const options = { numRuns: RUNS } as const;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          { weight: 3, arbitrary: ofType(schema, seeds) },
          { weight: 1, arbitrary: anyJson.map((json) => JSON.stringify(json)) },
        ),
        send,
      ),
      options,
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged(JSON.stringify(sampleOf(schema, '', seeds)))),
        send,
      ),
      options,
    );
  });
}

/** A text with a piece of it cut out, and something else in its place. */
function damaged(text: string): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat(text.length), fc.nat(8), fc.string({ unit: anyCharacter, maxLength: 4 }))
    .map(([at, length, other]) => text.slice(0, at) + other + text.slice(at + length));
}

t.test('any id in the path, any query, of every route', async () => {
  const withoutStream = apiRoutes.filter((route) => route.credential !== 'public');
  const parameter = fc.oneof(
    anyText,
    fc.constantFrom('th_01', 'cm_01kdyak3sefc2pny95ycyx01b8_01kdyak3sefc2pny01b9', 'x'.repeat(200), 'a~b', 'a/b'),
  );
  const names = [
    'limit',
    'cursor',
    'sort',
    'order',
    'resolved',
    'since',
    'include',
    'q',
    'kind',
    'userId',
    'createdSince',
    'prefix',
    'metadata.x',
    'ttl',
    'sv',
    'merge',
    'unread',
    '__proto__',
  ];
  const query = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(anyText, fc.constantFrom('1', 'true', 'asc', '2026-01-01', 'bnVsbA', 'eyJ2IjoxfQ')),
    { maxKeys: 3 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...withoutStream),
      fc.infiniteStream(parameter),
      query,
      async (route, parameters, search) => {
        const path = route.path.replaceAll(/:\w+/g, () => encoded(parameters.next().value ?? 'x'));
        const headers = await credentialsFor(route, tenant);
        await answersWell(route, `${path}?${new URLSearchParams(search).toString()}`, {
          headers,
          ...(bodyOf(route) === undefined ? {} : { body: bodyFor(route) }),
        });
      },
    ),
    { numRuns: RUNS * 5 },
  );
});

t.test('any header that the service reads', async () => {
  const create = routeOf('comments.create');
  const { path, body } = callOf(create, await seedFor(create, tenant));
  const credentials = await credentialsFor(create, tenant);
  const value = fc.oneof(
    fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
    fc.constantFrom('"', '""', '*', 'W/"x"', ',', ';', '=', 'bytes=0-', 'application/octet-stream'),
  );
  const names = [
    'Idempotency-Key',
    'X-Request-Id',
    'Content-Type',
    'Accept',
    'If-None-Match',
    'If-Match',
    'X-Forwarded-For',
    'X-Service-Key',
    'X-Service-Token',
    'Last-Event-ID',
    'Origin',
    'Accept-Encoding',
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), value, async (name, text) => {
      await answersWell(create, path, { body, headers: { ...credentials, [name]: text } });
    }),
    { numRuns: RUNS },
  );
});

t.test('any message over the WebSocket', async () => {
  const seeds = await seedFor({ path: '' }, tenant);
  const socket = await tenant.join({ userId: 'someone' });
  const known = Object.fromEntries(
    Object.entries(seeds).map(([name, value]) => [name, fc.oneof(fc.constant(value), anyText, anyJson)]),
  );
  const data = fc.oneof(
    fc.record(
      {
        ...known,
        body: fc.oneof(fc.constant('Hi'), anyText, anyJson),
        resolved: anyJson,
        emoji: fc.oneof(fc.constant('👍'), anyText),
        state: anyJson,
        x: anyNumber,
        y: anyNumber,
        position: anyJson,
        metadata: anyJson,
        token: anyText,
        to: anyText,
      },
      { requiredKeys: [] },
    ),
    anyJson,
  );
  const lasting = [...messages.keys()].filter((type) => type !== 'auth.refresh');
  await fc.assert(
    fc.asyncProperty(
      fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...lasting) }, { weight: 1, arbitrary: anyText }),
      data,
      async (type, payload) => {
        // As much time as a message costs, or the socket is closed for sending too many.
        service.clock.advance(20);
        const { type: kind, error } = await socket.request(type, payload);
        if (kind === 'ok') return;
        if (kind !== 'error' || error?.code === undefined || error.message === '')
          throw new Error(`no documented reply: ${kind}`);
        if (error.code === 'internal' || !Object.hasOwn(errorKinds, error.code))
          throw new Error(`${error.code}: ${error.message}`);
      },
    ),
    { numRuns: RUNS * 5 },
  );
  await socket.close();
});

function routeOf(operationId: string): Route {
  const found = apiRoutes.find((candidate) => candidate.operationId === operationId);
  if (found === undefined) throw new Error(`no route ${operationId}`);
  return found;
}

const bodyFor = (route: Route): unknown => sampleOf(bodyOf(route) ?? {}, '', { userId: 'ann' });

/** Percent-encoded; text that isn't Unicode can't be, and stands as it would arrive. */
function encoded(text: string): string {
  const path = /\p{Cs}/u.test(text) ? '%ED%A0%80' : encodeURIComponent(text);
  return path === '' || /^\.+$/.test(path) ? 'x' : path;
}
