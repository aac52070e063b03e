import type { ErrorCode } from '../../model/errors.ts';
import { version } from '../../model/version.ts';
import { acceptedTypes } from '../../model/attachment.ts';
import { API_PREFIX } from '../api/api-prefix.ts';
import { operationExamples } from './examples/operations.ts';
import { pathExamples, queryExamples } from './examples/records.ts';
import { fileErrors, filesPath } from './files.ts';
import {
  bytesContent,
  contact,
  headerRefs,
  type JsonObject,
  jsonContent,
  limitHeaders,
  refusalExamples,
  refusals,
  withSchemaRefs,
  securityOf,
  sharedComponents,
} from './parts.ts';
import { requestSchema } from './request-schemas.ts';
import { isForBrowsers } from '../api/browser-access.ts';
import type { Parameter, Route } from '../api/route.ts';

const ABOUT = `Comments pinned to pages: rooms hold threads, threads hold comments. All data belongs to the environment that the credentials identify.

- **Backends** send their secret key: \`Authorization: Bearer sk_…\`. A secret key must never be in a page.
- **Browsers** send a publishable key and the token of a user: \`X-Service-Key: pk_…\` and \`X-Service-Token\`, which a backend gets from \`POST /users/{userId}/tokens\` or signs itself. Browsers write over the WebSocket at \`${API_PREFIX}/ws\`, which delivers every change as it happens.
- **Admins** log in and send \`Authorization: Bearer adm_…\`, on /admin/* only.

Every refusal is \`{"error": "<message>"}\` with its code in \`X-Error-Code\`. Each address may make 100 requests per minute; further requests get 429 with \`Retry-After\`. Times are ISO 8601 in UTC with milliseconds. Clients must ignore unknown fields: within v1, fields are only added.`;

const tagTexts: Readonly<Record<string, string>> = {
  threads: 'Conversations in a room, optionally pinned to a place on a page.',
  comments: 'The messages of a thread.',
  reactions: 'Emoji on comments.',
  rooms: 'A room, such as a page, contains threads. It is created by its first use.',
  files: 'Images, audio and video that are attached to comments.',
  users: 'The possible authors. A user becomes known by connecting, or by PUT.',
  moderation: 'Content that waits for a moderator, and comments that users reported.',
  notifications: 'The inbox of a user: mentions, and comments in threads that the user follows.',
  notificationSettings: 'What a user is notified of, by channel and kind.',
  subscriptions: 'Whether a user follows a thread.',
  p2pState: 'The shared (CRDT) state of a room, for clients that join when there is no other client to sync with.',
  turnCredentials: 'Credentials with which browsers reach each other through restrictive networks.',
  events: 'The log of all changes, to synchronise from and to follow.',
  admin: 'Environments and their keys.',
  openapi: 'This document.',
};

/**
 * The OpenAPI 3.1 document of a table of routes, as the server at `publicUrl` gives it ('' for one at the root of its
 * host). The result depends on the arguments alone.
 */
export function documentOf(routes: readonly Route[], publicUrl = ''): JsonObject {
  const tags = [...new Set(routes.map(tagOf))];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Collab',
      version,
      summary: 'Comments, threads and presence for any page, self-hosted.',
      description: ABOUT,
      contact,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl + API_PREFIX, description: 'This server.' }],
    security: [{ secretKey: [] }],
    tags: tags.map((name) => ({ name, ...(tagTexts[name] === undefined ? {} : { description: tagTexts[name] }) })),
    paths: { ...pathsOf(routes), ...filesPath },
    // Empty: webhooks are those of a plugin. docs/webhooks.md describes their bodies, whose `data` is that of an event.
    webhooks: {},
    components: {
      ...sharedComponents,
      examples: refusalExamples(new Set([...routes.flatMap(errorsOf), ...fileErrors])),
    },
  };
}

function pathsOf(routes: readonly Route[]): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  }
  return paths;
}

function operationOf(route: Route): JsonObject {
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route)],
    ...securityOf[route.allowsImpersonation === true ? 'either' : route.credential],
    parameters: parametersOf(route),
    ...requestBodyOf(route),
    responses: { ...responsesOf(route), ...refusals(errorsOf(route)) },
  };
}

function requestBodyOf({ operationId, body, payload, upload }: Route): JsonObject {
  const example = exampleOf(operationExamples[operationId]?.body);
  if (upload === true) return { requestBody: { required: true, content: fileContent } };
  if (payload !== undefined)
    return {
      requestBody: {
        required: true,
        content: { ...jsonContent(requestSchema(payload.schema), example), ...bytesContent },
      },
    };
  return body === undefined
    ? {}
    : { requestBody: { required: true, content: jsonContent(requestSchema(body), example) } };
}

const exampleOf = (example: unknown): JsonObject => (example === undefined ? {} : { example });

const fileContent: JsonObject = {
  'multipart/form-data': {
    schema: {
      type: 'object',
      required: ['file'],
      properties: {
        file: {
          type: 'string',
          contentMediaType: 'application/octet-stream',
          description: 'The file. Its Content-Type must be one of the accepted types.',
        },
      },
    },
    example: { file: '(the bytes of the file)' },
    encoding: { file: { contentType: Object.keys(acceptedTypes).join(', ') } },
  },
};

function parametersOf(route: Route): JsonObject[] {
  const path = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1, maxLength: 128 },
    ...exampleOf(pathExamples[name]),
  }));
  const headers = [
    ...(route.idempotent === true ? [idempotencyKey] : []),
    ...conditionsOf(route),
    ...(route.stream === true ? [lastEventId] : []),
  ];
  return [...path, ...(route.query ?? []).map(queryParameter), ...headers];
}

function queryParameter({ name, schema, example = queryExamples[name] }: Parameter): JsonObject {
  const isMap = 'type' in schema && schema.type === 'object';
  return {
    name,
    in: 'query',
    required: false,
    ...(isMap ? { style: 'form', explode: true } : {}),
    schema: withSchemaRefs(schema),
    ...exampleOf(example),
  };
}

function conditionsOf({ conditions }: Route): JsonObject[] {
  if (conditions === undefined) return [];
  return conditions === 'write' ? [ifMatch, ifNoneMatch] : [ifNoneMatch];
}

function responsesOf(route: Route): JsonObject {
  const headers = {
    ...limitHeaders,
    ...(route.list === true ? headerRefs('Link') : {}),
    ...(route.idempotent === true ? headerRefs('Idempotent-Replayed') : {}),
    ...(route.conditions === undefined ? {} : headerRefs('ETag')),
  };
  const others = { ...(route.bytes === true ? bytesContent : {}), ...(route.stream === true ? streamContent : {}) };
  const responses = Object.entries(route.responses).map(([status, schema]): [string, JsonObject] => {
    const example = exampleOf(operationExamples[route.operationId]?.responses[Number(status)]);
    return [
      status,
      {
        description: status === '201' ? 'Created.' : 'Done.',
        headers,
        content: { ...jsonContent(schema, example), ...others },
      },
    ];
  });
  if (route.bytes === true) responses.push(['204', { description: 'There is no state.', headers }]);
  if (route.conditions === 'read' || route.conditions === 'log')
    responses.push(['304', { description: 'Nothing has changed.', headers }]);
  return Object.fromEntries(responses);
}

/** The refusals of a route: its own, and those that follow from its credential, its body and its access. */
function errorsOf(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['rate_limited', 'storage_unavailable', 'internal'];
  if (route.credential !== 'public') codes.push('missing_credentials', 'invalid_key');
  if (route.credential === 'admin') codes.push('invalid_session');
  if (route.credential === 'secret' || isForBrowsers(route)) codes.push('environment_disabled', 'forbidden');
  if (isForBrowsers(route)) codes.push('invalid_token', 'token_expired', 'origin_not_allowed');
  if (route.body !== undefined || route.payload !== undefined)
    codes.push('payload_too_large', 'invalid_content_type', 'invalid_json');
  if (route.path.includes(':')) codes.push('invalid_request');
  if (route.access !== 'read' && route.method !== 'GET')
    codes.push('write_conflict', 'storage_full', 'storage_failed', 'store_moving');
  if (route.idempotent === true) codes.push('idempotency_key_reused');
  return [...codes, ...route.errors];
}

const headerParameter = (name: string, description: string, schema: JsonObject, example?: string): JsonObject => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
  ...exampleOf(example),
});

const idempotencyKey = headerParameter(
  'Idempotency-Key',
  'Makes the request repeatable for 24 hours: a request with the same key, path, body and credential ' +
    'gets the first response again. The key should be random if the response contains a secret.',
  { type: 'string', minLength: 1, maxLength: 255 },
  '0c7d2f7e-5b1a-4c39-9d0e-8f6a3b21e4d7',
);
const ifMatch = headerParameter(
  'If-Match',
  'ETags, or `*`. Writes only if the stored state has one of these versions, or with `*`, if there is a state; otherwise 412.',
  { type: 'string' },
);
const ifNoneMatch = headerParameter(
  'If-None-Match',
  'ETags, or `*`. On GET: 304 if the current version has one of them. On PUT: 412 in that case; `*` writes only if there is no state.',
  { type: 'string' },
);
const lastEventId = headerParameter(
  'Last-Event-ID',
  'For streams: `<epoch>:<seq>` of the last event that the client has received. Browsers send it automatically.',
  { type: 'string' },
);

const streamContent: JsonObject = {
  'text/event-stream': {
    schema: {
      type: 'string',
      description: 'A message of the type `welcome`, then one per event, whose `id` is its position.',
    },
    example:
      'retry: 2000\nevent: welcome\nid: 9f2c4b71d05e8a36-4c1f0e9a7b3d5268:4\ndata: ' +
      '{"epoch":"9f2c4b71d05e8a36-4c1f0e9a7b3d5268","seq":4,"recovered":true}\n\nid: ' +
      '9f2c4b71d05e8a36-4c1f0e9a7b3d5268:5\ndata: {"type":"thread.resolved","seq":5,…}\n\n',
  },
};

function tagOf({ operationId }: Route): string {
  return operationId.split('.', 1).join();
}
