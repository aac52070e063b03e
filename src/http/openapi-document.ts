import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../errors.ts';
import { version } from '../lib/version.ts';
import { API_PREFIX } from './api-prefix.ts';
import type { Route } from './route.ts';
import { namedSchemas } from './schemas.ts';

type Json = Readonly<Record<string, unknown>>;

const named = new Map<unknown, string>(Object.entries(namedSchemas).map(([name, schema]) => [schema, name]));

/** The OpenAPI 3.1 document of a table of routes. The same table always gives the same document. */
export function documentOf(routes: readonly Route[]): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Collab',
      version,
      description: 'Comments pinned to pages: rooms hold threads, threads hold comments. Everything is scoped to the environment of the key.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: API_PREFIX }],
    security: [{ secretKey: [] }],
    tags: [...new Set(routes.map(tagOf))].map((name) => ({ name })),
    paths: pathsOf(routes),
    components: {
      schemas: Object.fromEntries(Object.entries(namedSchemas).map(([name, schema]) => [name, inlined(schema)])),
      headers: headerObjects,
      securitySchemes: {
        secretKey: { type: 'http', scheme: 'bearer', description: 'A secret key, sk_…: for backends only, never in a page.' },
      },
    },
  };
}

function pathsOf(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  }
  return paths;
}

function operationOf(route: Route): Json {
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route)],
    ...(route.credential === 'public' ? { security: [] } : {}),
    parameters: parametersOf(route),
    ...(route.body === undefined ? {} : { requestBody: { required: true, content: jsonContent(route.body) } }),
    responses: { ...answersOf(route), ...refusalsOf(route) },
  };
}

function parametersOf(route: Route): Json[] {
  const path = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string', minLength: 1, maxLength: 128 } }));
  const query = (route.query ?? []).map(({ name, schema }) => ({ name, in: 'query', required: false, schema: referred(schema) }));
  return [...path, ...query, ...(route.idempotent === true ? [idempotencyKey] : [])];
}

function answersOf(route: Route): Json {
  const headers = {
    ...limitHeaders,
    ...(route.list === true ? headerRefs('Link') : {}),
    ...(route.idempotent === true ? headerRefs('Idempotent-Replayed') : {}),
  };
  return Object.fromEntries(
    Object.entries(route.answers).map(([status, schema]) => [status, { description: status === '201' ? 'Created' : 'Done', headers, content: jsonContent(schema) }]),
  );
}

function refusalsOf(route: Route): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...commonErrors(route), ...route.errors])) {
    const { status } = errorKinds[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${errorKinds[code].meaning}`).join('\n'),
        headers: { ...limitHeaders, ...headerRefs('X-Error-Code'), ...(status === 429 ? headerRefs('Retry-After') : {}) },
        content: jsonContent(namedSchemas.Error),
      },
    ]),
  );
}

function commonErrors(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['rate_limited', 'internal'];
  if (route.credential === 'secret') codes.push('missing_credentials', 'invalid_key', 'environment_disabled', 'forbidden');
  if (route.body !== undefined) codes.push('payload_too_large', 'invalid_content_type', 'invalid_json');
  if (route.access !== 'read') codes.push('write_conflict', 'storage_full');
  if (route.idempotent === true) codes.push('idempotency_key_reused');
  return codes;
}

const headerObjects: Json = {
  'RateLimit-Policy': { description: 'Requests allowed in a window: `"default";q=<requests>;w=<seconds>`.', schema: { type: 'string' } },
  RateLimit: { description: 'Requests left now, and seconds until there are more: `"default";r=<requests>;t=<seconds>`.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds until the next request is allowed.', schema: { type: 'integer' } },
  'X-Request-Id': { description: 'Names the request in the log: as sent, or ours.', schema: { type: 'string' } },
  'X-Error-Code': { description: 'The kind of refusal.', schema: { type: 'string', enum: Object.keys(errorKinds) } },
  Link: { description: 'The next page, `rel="next"`; absent on the last.', schema: { type: 'string' } },
  'Idempotent-Replayed': { description: 'Present when this is the answer of an earlier request with the same key.', schema: { type: 'string', const: 'true' } },
};

const limitHeaders: Json = headerRefs('RateLimit-Policy', 'RateLimit', 'X-Request-Id');

const idempotencyKey: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes the request repeatable for 24 hours: the same key, path and body get the first answer again.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

function headerRefs(...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function jsonContent(schema: TSchema): Json {
  return { 'application/json': { schema: referred(schema) } };
}

function tagOf({ operationId }: Route): string {
  return operationId.split('.', 1).join();
}

/** A schema in which every named one, itself too, is a reference. */
function referred(schema: unknown): unknown {
  const name = named.get(schema);
  return name === undefined ? inlined(schema) : { $ref: `#/components/schemas/${name}` };
}

/** A schema itself, in which every named one is a reference. */
function inlined(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(referred);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, referred(value)]));
}
