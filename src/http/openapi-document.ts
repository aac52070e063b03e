import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../errors.ts';
import { version } from '../lib/version.ts';
import { acceptedTypes } from '../model/attachment.ts';
import { API_PREFIX } from './api-prefix.ts';
import { isForBrowsers } from './cors.ts';
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
        publishableKey: { type: 'apiKey', in: 'header', name: 'X-Service-Key', description: 'A publishable key, pk_…: it names the environment.' },
        userToken: { type: 'apiKey', in: 'header', name: 'X-Service-Token', description: 'The token (JWT) of a user, beside the publishable key.' },
        adminSession: { type: 'http', scheme: 'bearer', description: 'The token of an admin session, adm_…, which `POST /admin/auth/login` gives. Valid on /admin/* only.' },
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
    ...securityOf(route),
    parameters: parametersOf(route),
    ...requestBodyOf(route),
    responses: { ...answersOf(route), ...refusalsOf(route) },
  };
}

function securityOf({ credential }: Route): Json {
  if (credential === 'public') return { security: [] };
  if (credential === 'admin') return { security: [{ adminSession: [] }] };
  if (credential === 'user') return { security: [{ publishableKey: [], userToken: [] }] };
  return credential === 'either' ? { security: [{ secretKey: [] }, { publishableKey: [], userToken: [] }] } : {};
}

function requestBodyOf({ body, payload, upload }: Route): Json {
  if (upload === true) return { requestBody: { required: true, content: fileContent } };
  if (payload !== undefined) return { requestBody: { required: true, content: { ...bytesContent, ...jsonContent(payload.schema) } } };
  return body === undefined ? {} : { requestBody: { required: true, content: jsonContent(body) } };
}

const fileContent: Json = {
  'multipart/form-data': {
    schema: { type: 'object', required: ['file'], properties: { file: { type: 'string', contentMediaType: 'application/octet-stream', description: 'The one file; its Content-Type is one of those accepted.' } } },
    encoding: { file: { contentType: Object.keys(acceptedTypes).join(', ') } },
  },
};

function conditionsOf({ conditions }: Route): Json[] {
  if (conditions === undefined) return [];
  return conditions === 'write' ? [ifMatch, ifNoneMatch] : [ifNoneMatch];
}

function parametersOf(route: Route): Json[] {
  const path = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string', minLength: 1, maxLength: 128 } }));
  const query = (route.query ?? []).map(({ name, schema }) => ({ name, in: 'query', required: false, schema: referred(schema) }));
  return [...path, ...query, ...(route.idempotent === true ? [idempotencyKey] : []), ...conditionsOf(route)];
}

function answersOf(route: Route): Json {
  const headers = {
    ...limitHeaders,
    ...(route.list === true ? headerRefs('Link') : {}),
    ...(route.idempotent === true ? headerRefs('Idempotent-Replayed') : {}),
    ...(route.conditions === undefined ? {} : headerRefs('ETag')),
  };
  const answers = Object.entries(route.answers).map(([status, schema]): [string, Json] => [
    status,
    { description: status === '201' ? 'Created' : 'Done', headers, content: { ...jsonContent(schema), ...(route.bytes === true ? bytesContent : {}) } },
  ]);
  if (route.bytes === true) answers.push(['204', { description: 'There are no bytes.', headers }]);
  if (route.conditions === 'read' || route.conditions === 'log') answers.push(['304', { description: 'Nothing has changed.', headers }]);
  return Object.fromEntries(answers);
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
  if (route.credential !== 'public') codes.push('missing_credentials', 'invalid_key');
  if (route.credential === 'admin') codes.push('invalid_session');
  if (route.credential === 'secret' || isForBrowsers(route)) codes.push('environment_disabled', 'forbidden');
  if (isForBrowsers(route)) codes.push('invalid_token', 'token_expired', 'origin_not_allowed');
  if (route.body !== undefined || route.payload !== undefined) codes.push('payload_too_large', 'invalid_content_type', 'invalid_json');
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
  ETag: { description: 'Names this version.', schema: { type: 'string' } },
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

const ifMatch: Json = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'ETags, or `*`: writes only over one of these versions, or only over something; else 412.',
  schema: { type: 'string' },
};
const ifNoneMatch: Json = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'ETags, or `*`. On GET: 304 when what is there has one of them. On PUT: 412 then; `*` writes only where nothing is.',
  schema: { type: 'string' },
};

const bytesContent: Json = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

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
