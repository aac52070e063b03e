import t, { type Test } from 'tap';
import { asyncapiDocument } from '../../src/http/openapi/asyncapi.ts';
import { apiRoutes } from '../../src/http/api/routes.ts';
import { socketSchemas } from '../../src/realtime/socket-schemas.ts';
import { type Field, fieldsOf, nameOf, withField, withoutField } from '../helpers/body-fields.ts';
import { isAs, operations, resolved } from '../helpers/openapi.ts';
import {
  bodyOf,
  callOf,
  credentialsFor,
  pace,
  sampleOf,
  type SchemaNode,
  seedFor,
  type Seeds,
  successes,
  titleOf,
} from '../helpers/route-calls.ts';
import { startService } from '../helpers/service.ts';
import type { TestSocket } from '../helpers/socket.ts';
import type { Failure } from '../helpers/writer.ts';

// For every field of every body and message: the documents allow null exactly where the server takes it.

/** What the server said: whether it did the work, otherwise why not. */
interface Verdict {
  readonly ok: boolean;
  readonly error: string;
}

/** Sends what `change` makes of a body that the server takes. */
type Send = (change: (sample: unknown, seeds: Seeds) => unknown) => Promise<Verdict>;

const asyncapi = JSON.parse(JSON.stringify(asyncapiDocument(socketSchemas))) as {
  readonly components: { readonly messages: Readonly<Record<string, { readonly payload: SchemaNode }>> };
};

/** Whether null was taken, be it as a value or as if the field were absent. */
function tookNull(nulled: Verdict, left: Verdict): boolean {
  return nulled.ok || (nulled.error === left.error && !left.error.endsWith(' is required'));
}

/** The schema that a document has for a field. */
function describedAt(described: unknown, { path }: Field): unknown {
  return path.reduce<SchemaNode>((node, name) => node.properties?.[name] ?? {}, resolved(described) as SchemaNode);
}

/**
 * Holds that `described`, the schema of a document, and the server agree on null in every field of `schema`, by which
 * the server validates.
 */
async function agreeOnNull(t: Test, schema: SchemaNode, described: unknown, send: Send): Promise<void> {
  t.strictSame(await send((sample) => sample), { ok: true, error: '' }, 'the server takes the sample');
  for (const field of fieldsOf(schema)) {
    const put = (value: (seeds: Seeds) => unknown) => (sample: unknown, seeds: Seeds) =>
      withField(schema, sample, field.path, value(seeds), seeds);
    const whole = put((seeds) => sampleOf(field.schema, field.path.at(-1) ?? '', seeds));
    const left = await send((sample, seeds) => withoutField(whole(sample, seeds), field.path));
    const nulled = await send(put(() => null));
    const allowed = isAs(describedAt(described, field), null);
    t.equal(allowed, tookNull(nulled, left), `${nameOf(field)} | null is ${allowed ? '' : 'not '}allowed`, {
      left: left.error,
      nulled: nulled.error,
    });
    if (!field.required) t.ok(allowed, `${nameOf(field)} is optional, and null is allowed`);
  }
}

const service = await startService(t);
const tenant = await service.tenant('nulls');

for (const route of apiRoutes) {
  const schema = bodyOf(route);
  if (schema?.type !== 'object') continue;
  await t.test(titleOf(route), async (t) => {
    const described = operations.find(({ operationId }) => operationId === route.operationId)?.requestBody?.content[
      'application/json'
    ]?.schema;
    const headers = await credentialsFor(route, tenant);
    let seeds = await seedFor(route, tenant);
    await agreeOnNull(t, schema, described, async (change) => {
      const { method, path, body } = callOf(route, seeds);
      pace(route, service);
      const { status, json } = await tenant.request<Partial<Failure>>(method, path, {
        body: change(body, seeds),
        key: null,
        headers,
      });
      const ok = successes(route).includes(status);
      // A write may use up what it is for.
      if (ok) seeds = await seedFor(route, tenant);
      return { ok, error: json.error ?? '' };
    });
  });
}

/** What a message needs besides its required fields, by its type. */
const extras: Readonly<Record<string, (seeds: Seeds) => object>> = {
  connect: ({ token }) => ({ token }),
  'presence.update': () => ({ state: { page: 1 } }),
  'users.lookup': ({ userId }) => ({ ids: [userId] }),
  'thread.update': () => ({ resolved: true }),
  'comment.update': () => ({ body: 'sample' }),
  'notifications.read': () => ({ all: true }),
};

/** Opens a socket of a moderator, and names what identifies it. */
async function opened(userId: string): Promise<{ socket: TestSocket; own: Seeds }> {
  const request = { userId, role: 'moderator' } as const;
  const socket = await tenant.join(request);
  const { data } = await socket.frame('welcome');
  return { socket, own: { token: await tenant.token(request), to: String(data?.['connectionId']) } };
}

/** The least that a message needs. */
function messageOf(type: string, { properties = {}, required = [] }: SchemaNode, seeds: Seeds): unknown {
  return {
    ...Object.fromEntries(required.map((name) => [name, seeds[name] ?? sampleOf(properties[name] ?? {}, name, seeds)])),
    ...extras[type]?.(seeds),
  };
}

for (const [type, data] of Object.entries(socketSchemas)) {
  if (data === null) continue;
  const schema = data as SchemaNode;
  const { payload } = asyncapi.components.messages[`${type}.request`] ?? {};
  const described = payload?.properties?.['data'];

  await t.test(type, async (t) => {
    const { socket, own } = await opened(`user of ${type}`);
    const ask = async (message: unknown): Promise<Verdict> => {
      const asked = type === 'connect' ? tenant.open({}, `?key=${tenant.publishableKey}`) : socket;
      await asked.opened;
      const answer = await asked.request(type, message);
      return { ok: answer.type === 'ok', error: answer.error?.message ?? '' };
    };
    const prepare = async (): Promise<Seeds> => {
      const seeds = { ...(await seedFor({ path: '/:reactionId' }, tenant)), ...own };
      await socket.request('room.join', { roomId: seeds['roomId'] });
      return seeds;
    };
    let seeds = await prepare();
    await agreeOnNull(t, schema, described, async (change) => {
      const verdict = await ask(change(messageOf(type, schema, seeds), seeds));
      if (verdict.ok) seeds = await prepare();
      return verdict;
    });
    const optional = payload?.required?.includes('data') !== true;
    t.equal(isAs(described, null), optional, 'data');
    const [nulled, empty] = [await ask(null), await ask({})];
    t.strictSame(nulled, empty, 'null is as an empty object');
  });
}

await t.test('the id of a message may not be null', async (t) => {
  const { socket } = await opened('ann');
  socket.send({ type: 'room.leave', id: null, data: {} });
  t.match(await socket.frame('error'), { error: { message: /^id must be a positive integer/ } });
  for (const [name, { payload }] of Object.entries(asyncapi.components.messages)) {
    if (name.endsWith('.request')) t.notOk(isAs(payload.properties?.['id'], null), name);
  }
});
