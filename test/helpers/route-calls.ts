import { authenticateAdmin, login } from '../../src/domain/admins/admin-sessions.ts';
import { createAdmin } from '../../src/domain/admins/admins.ts';
import type { BackendActor } from '../../src/domain/access/actor.ts';
import { createComment } from '../../src/domain/comments/comments.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { API_PREFIX } from '../../src/http/api/api-prefix.ts';
import type { Route } from '../../src/http/api/route.ts';
import type { Service, Tenant } from './service.ts';
import { done } from './writer.ts';

/** What a tenant holds that the paths and bodies of routes can name: parameter of the path -> id. */
export type Seeds = Readonly<Record<string, string>>;

/** A request to a route with which it does its work. */
export interface RouteCall {
  readonly method: Route['method'];
  /** Below the prefix of the API. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How to make what paths name besides room, thread, comment and user: parameter of the path -> its id. */
const makers: Readonly<Record<string, (tenant: Tenant, seeds: Seeds) => Promise<string>>> = {
  reactionId: async (tenant, { commentId, userId }) => {
    const answer = await tenant.request<{ reaction: { id: string } }>('POST', `/comments/${commentId}/reactions`, {
      body: { userId, emoji: '🎉' },
    });
    return done(201, answer).reaction.id;
  },
  itemId: async (tenant, { commentId }) => {
    done(201, await tenant.request('POST', `/comments/${commentId}/report`, { body: { reason: 'advertising' } }));
    const queue = done(
      200,
      await tenant.request<{ items: { id: string }[] }>('GET', '/moderation?state=reported&order=desc&limit=1'),
    );
    return queue.items[0]?.id ?? '';
  },
  keyId: async (tenant) => (await tenant.newKey({})).id,
  // Not the tenant's own, which a call may delete.
  environmentId: async ({ service }) => (await createEnvironment(service.ctx, { slug: freshSlug() })).id,
};

const made = { slugs: 0, seeds: 0 };
const freshSlug = (): string => `made-${(made.slugs += 1)}`;

interface Setup {
  /** The body, where `sampleOf` can't make one of the schema. */
  readonly body?: (seeds: Seeds) => unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** What a secret key of another environment gets, where `foreignStatus` can't tell. */
  readonly foreign?: number;
}

/**
 * By operationId: what a route needs besides. A route that is in none of the tables of tests works without an entry.
 */
const setups: Readonly<Record<string, Setup>> = {
  'files.upload': { body: () => onePixel, headers: { 'Content-Type': 'multipart/form-data; boundary=edge' } },
  'threads.update': { body: () => ({ resolved: true }) },
  'comments.update': { body: () => ({ body: 'sample' }) },
  // There, nobody has used the room yet.
  'rooms.get': { foreign: 200 },
  'notifications.read': { body: () => ({ all: true }) },
  'subscriptions.change': { body: ({ userId }) => ({ userId, action: 'mute' }) },
  'admin.login': { body: () => ADMIN },
  'admin.createEnvironment': { body: () => ({ slug: freshSlug() }) },
  // Tests let a day go by, and a key can be rotated until it expires.
  'admin.rotateKey': { body: () => ({ overlapSeconds: 7 * 86_400 }) },
};

/** A whole PNG of one pixel, as a form sends it. */
const onePixel = Buffer.concat([
  Buffer.from(
    '--edge\r\nContent-Disposition: form-data; name="file"; filename="dot.png"\r\nContent-Type: image/png\r\n\r\n',
  ),
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
    'base64',
  ),
  Buffer.from('\r\n--edge--\r\n'),
]);

/** Who administers each service of a test. */
export const ADMIN = { email: 'root@example.com', password: 'correct horse battery' };
const sessions = new WeakMap<Context, string>();

/** The token of a session of the admin of a service. Both are made when there is none. */
export async function adminSession({ ctx }: Service): Promise<string> {
  const known = sessions.get(ctx);
  if (known !== undefined && (await isOpen(ctx, known))) return known;
  if (known === undefined) await createAdmin(ctx, ADMIN.email, ADMIN.password);
  const { token } = await login(ctx, ADMIN);
  sessions.set(ctx, token);
  return token;
}

function isOpen(ctx: Context, session: string): Promise<boolean> {
  return authenticateAdmin(ctx, session).then(
    () => true,
    () => false,
  );
}

/** The headers of a credential that a route lets in: as the tenant's backend, as one of its users, as admin. */
export async function credentialsFor(route: Route, tenant: Tenant): Promise<Readonly<Record<string, string>>> {
  switch (route.credential) {
    case 'public':
      return {};
    case 'secret':
    case 'either':
      return { Authorization: `Bearer ${tenant.secretKey}` };
    case 'user':
      return tenant.userHeaders({ userId: 'someone' });
    case 'admin':
      return { Authorization: `Bearer ${await adminSession(tenant.service)}` };
  }
}

/** Lets so much time go by that the route takes one more request: logins are limited, whoever asks. */
export function pace(route: Route, { clock }: Service): void {
  if (route.rateLimit === 'login') clock.advance(12_001);
}

/** Parameters whose values only the server makes, so that another environment can't have the same. */
const serverMade = /:(?!roomId|userId)\w+/;
/** Paths that end in an id of the caller's choice: one record, which has to be there unless it is PUT. */
const chosenRecord = /\/:(?:roomId|userId)$/;

/**
 * Makes a room, a thread, a comment and a user in a tenant, and what the path of the route names besides. Not by
 * requests, which would be half of those of some tests.
 */
export async function seedFor(
  route: Pick<Route, 'path'>,
  tenant: Tenant,
  marker = `seed ${(made.seeds += 1)}`,
): Promise<Seeds> {
  const userId = `user of ${marker}`;
  const roomId = `room of ${marker}`;
  const { ctx } = tenant.service;
  const { environment } = tenant;
  const actor: BackendActor = {
    kind: 'backend',
    environment,
    keyId: 'key_seeds',
    scope: 'full',
    rooms: null,
    via: 'rest',
  };
  await putUser(ctx, actor, userId, {
    name: `Name of ${marker}`,
    email: `${marker.replaceAll(' ', '-')}@example.com`,
    metadata: { note: `fact of ${marker}` },
  });
  const opening = {
    userId,
    body: `text of ${marker}`,
    mentions: [userId],
    metadata: { note: `fact of ${marker}` },
  };
  const created = await createThread(ctx, actor, roomId, opening, null);
  const { thread } = JSON.parse(created.body) as { thread: { id: string } };
  const answered = await createComment(ctx, actor, thread.id, { userId, body: `reply of ${marker}` }, null);
  const { comment } = JSON.parse(answered.body) as { comment: { id: string } };
  if (route.path.startsWith('/admin')) await adminSession(tenant.service);
  let seeds: Seeds = { roomId, threadId: thread.id, commentId: comment.id, userId };
  for (const name of parametersOf(route.path)) {
    const make = makers[name];
    if (make !== undefined) seeds = { ...seeds, [name]: await make(tenant, seeds) };
  }
  return seeds;
}

/**
 * A request that the route answers with a 2xx in the tenant that the seeds are of. Throws when the path names what no
 * seed is.
 */
export function callOf(route: Route, seeds: Seeds): RouteCall {
  const setup = setups[route.operationId];
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = seeds[name];
    if (value === undefined)
      throw new Error(`${route.operationId}: say in makers of test/helpers/route-calls.ts how to make a ${name}`);
    return encodeURIComponent(value);
  });
  const body = setup?.body?.(seeds) ?? sampleBody(route, seeds);
  return { method: route.method, path, ...(body === undefined ? {} : { body }), headers: setup?.headers ?? {} };
}

function sampleBody(route: Route, seeds: Seeds): unknown {
  const schema = bodyOf(route);
  return schema === undefined ? undefined : sampleOf(schema, '', seeds);
}

/** The schema of the JSON that a route takes, be it one way of several. */
export function bodyOf({ body, payload }: Route): SchemaNode | undefined {
  return (body ?? payload?.schema) as SchemaNode | undefined;
}

/**
 * What a secret key of another environment gets for such a call: it may use names of its own choice, and finds nothing.
 */
export function foreignStatus(route: Route): readonly number[] {
  const declared = setups[route.operationId]?.foreign;
  if (declared !== undefined) return [declared];
  if (route.credential === 'admin' || route.credential === 'user') return [401];
  if (serverMade.test(route.path)) return [404];
  if (chosenRecord.test(route.path) && route.method !== 'PUT') return [404];
  if (namesAuthor(route)) return [400];
  return successes(route);
}

/** The statuses that are no refusals. */
export function successes(route: Route): readonly number[] {
  return Object.keys(route.responses)
    .map(Number)
    .filter((status) => status < 300);
}

/** The names of the parameters in a path, in their order. */
export const parametersOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

/** The method and full path of an operation, as `POST /api/v1/rooms/:roomId/threads`. */
export const titleOf = (route: Route): string => `${route.method} ${API_PREFIX}${route.path}`;

/** A schema as the JSON that it is. */
export interface SchemaNode {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly SchemaNode[];
  readonly items?: SchemaNode;
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
}

const namesAuthor = (route: Route): boolean => bodyOf(route)?.required?.includes('userId') === true;

/** Values by the name of the field; every other is made of its schema. */
const samples: Readonly<Record<string, (seeds: Seeds) => unknown>> = {
  userId: (seeds) => seeds['userId'],
  emoji: () => '👍',
  state: () => 'AQID',
  kind: () => 'secret',
  email: () => 'someone@example.com',
  password: () => 'a long enough password',
};

/** The least value of a schema: of an object the required fields alone. */
export function sampleOf(schema: SchemaNode, name: string, seeds: Seeds): unknown {
  const known = samples[name];
  if (known !== undefined) return known(seeds);
  if (schema.anyOf !== undefined) return sampleOf(schema.anyOf[0] ?? {}, name, seeds);
  if (schema.const !== undefined) return schema.const;
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((field) => [field, sampleOf(schema.properties?.[field] ?? {}, field, seeds)]),
      );
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sampleOf(schema.items ?? {}, '', seeds));
    case 'string':
      return 'sample'.padEnd(schema.minLength ?? 0, '-');
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return true;
    default:
      return null;
  }
}
