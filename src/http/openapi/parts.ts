import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../../model/errors.ts';
import { errorExamples } from './examples/errors.ts';
import { namedEvents, namedSchemas } from './schemas.ts';

/** A part of the document. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The contact in both documents. Only the operators have an address to put here. */
export const contact: JsonObject = { name: 'The operators of this server' };

const schemas: Readonly<Record<string, TSchema>> = { ...namedSchemas, ...namedEvents };
const names = new Map<unknown, string>(Object.entries(schemas).map(([name, schema]) => [schema, name]));

/** The components of the document that do not depend on the routes. */
export const sharedComponents: JsonObject = {
  schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, inlined(schema)])),
  headers: {
    'RateLimit-Policy': {
      description: 'Requests allowed in a window: `"default";q=<requests>;w=<seconds>`.',
      schema: { type: 'string' },
      example: '"default";q=100;w=60',
    },
    RateLimit: {
      description:
        'Requests left in the window, and seconds until more are allowed: `"default";r=<requests>;t=<seconds>`.',
      schema: { type: 'string' },
      example: '"default";r=73;t=21',
    },
    'Retry-After': {
      description: 'Seconds until the next request is allowed.',
      schema: { type: 'integer' },
      example: 12,
    },
    'X-Request-Id': {
      description: 'Identifies the request in the log: the id that the client sent, or one that the server generated.',
      schema: { type: 'string' },
      example: 'Qm8fZw3K-1a',
    },
    'X-Error-Code': {
      description: 'The code of the refusal.',
      schema: { type: 'string', enum: Object.keys(errorKinds) },
    },
    Link: { description: 'The next page, `rel="next"`; absent on the last page.', schema: { type: 'string' } },
    ETag: { description: 'Identifies this version.', schema: { type: 'string' } },
    'Idempotent-Replayed': {
      description: 'Present if this repeats the response to an earlier request with the same key.',
      schema: { type: 'string', const: 'true' },
    },
    'Collab-Hint': {
      description: 'Names of fields or parameters that are unknown and resemble a known one; they were ignored.',
      schema: { type: 'string' },
      example: 'limt is unknown and was ignored: did you mean limit?',
    },
    'Content-Range': {
      description: 'The position of these bytes and the size of the file.',
      schema: { type: 'string' },
      example: 'bytes 0-1023/48213',
    },
  },
  securitySchemes: {
    secretKey: {
      type: 'http',
      scheme: 'bearer',
      description: 'A secret key, sk_…, for backends only; it must never be in a page.',
    },
    publishableKey: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Service-Key',
      description: 'A publishable key, pk_…, which identifies the environment.',
    },
    userToken: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Service-Token',
      description: 'The token (JWT) of a user, together with the publishable key.',
    },
    adminSession: {
      type: 'http',
      scheme: 'bearer',
      description:
        'The token of an admin session, adm_…, which `POST /admin/auth/login` returns. Valid on /admin/* only.',
    },
  },
};

/**
 * The security of an operation by the credential of its route; absent for the secret key, which is the default of the
 * document.
 */
export const securityOf: Readonly<Record<'secret' | 'user' | 'either' | 'admin' | 'public', JsonObject>> = {
  secret: {},
  user: { security: [{ publishableKey: [], userToken: [] }] },
  either: { security: [{ secretKey: [] }, { publishableKey: [], userToken: [] }] },
  admin: { security: [{ adminSession: [] }] },
  public: { security: [] },
};

/** The headers of every response. */
export const limitHeaders: JsonObject = headerRefs('RateLimit-Policy', 'RateLimit', 'X-Request-Id', 'Collab-Hint');

/** Content of raw bytes. */
export const bytesContent: JsonObject = {
  'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
};

/** The responses of these refusals by status, each with an example per code. */
export function refusals(codes: Iterable<ErrorCode>): JsonObject {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) {
    const { status } = errorKinds[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const statuses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(
    statuses.map(([status, kinds]) => [
      status,
      {
        description: kinds.map((code) => `\`${code}\`: ${errorKinds[code].meaning}`).join('\n'),
        headers: {
          ...limitHeaders,
          ...headerRefs('X-Error-Code'),
          ...(status === 429 ? headerRefs('Retry-After') : {}),
        },
        content: {
          ...jsonContent(namedSchemas.Error, {
            examples: Object.fromEntries(kinds.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
          }),
          'application/problem+json': { schema: withSchemaRefs(namedSchemas.Problem) },
        },
      },
    ]),
  );
}

/** The examples that `refusals` refers to. */
export function refusalExamples(codes: Iterable<ErrorCode>): JsonObject {
  return Object.fromEntries([...codes].map((code) => [code, { value: { error: errorExamples[code] } }]));
}

/** References to shared headers, by name. */
export function headerRefs(...headers: string[]): JsonObject {
  return Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** JSON content with a schema. `examples`: `example` or `examples` of the media type. */
export function jsonContent(schema: TSchema, examples: JsonObject = {}): JsonObject {
  return { 'application/json': { schema: withSchemaRefs(schema), ...examples } };
}

/** A copy of a schema in which every named schema, itself included, is replaced by a reference. */
export function withSchemaRefs(schema: unknown): unknown {
  const name = names.get(schema);
  return name === undefined ? inlined(schema) : { $ref: `#/components/schemas/${name}` };
}

/** A copy of a schema in which every named schema, except itself, is replaced by a reference. */
function inlined(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withSchemaRefs);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withSchemaRefs(value)]));
}
