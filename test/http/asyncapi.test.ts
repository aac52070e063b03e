import t from 'tap';
import { Check } from 'typebox/value';
import type { TSchema } from 'typebox';
import { asyncapiDocument } from '../../src/http/openapi/asyncapi.ts';
import { eventTypes } from '../../src/model/event.ts';
import { messages } from '../../src/realtime/messages/messages.ts';
import { socketSchemas } from '../../src/realtime/socket-schemas.ts';
import { until } from '../helpers/cluster.ts';
import { startService } from '../helpers/service.ts';

interface Reference {
  readonly $ref: string;
}

interface Document {
  readonly asyncapi: string;
  readonly info: { readonly tags: readonly Reference[] };
  readonly operations: Readonly<
    Record<
      string,
      { readonly description: string; readonly tags: readonly Reference[]; readonly messages: readonly Reference[] }
    >
  >;
  readonly components: {
    readonly tags: Readonly<Record<string, { readonly name: string; readonly description: string }>>;
    readonly messages: Readonly<Record<string, { readonly payload: unknown }>>;
    readonly schemas: Readonly<Record<string, unknown>>;
  };
}

const document = JSON.parse(JSON.stringify(asyncapiDocument(socketSchemas))) as Document;

/** A part of the document with every reference to a schema replaced by the schema. */
function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved);
  if (typeof part !== 'object' || part === null) return part;
  const { $ref } = part as { $ref?: string };
  if ($ref !== undefined) return resolved(document.components.schemas[$ref.replace('#/components/schemas/', '')]);
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolved(value)]));
}

const fits = (name: string, frame: unknown): boolean => {
  const message = document.components.messages[name];
  return message !== undefined && Check(resolved(message.payload) as TSchema, frame);
};

t.test('it describes every message that the server handles, and every event', (t) => {
  t.equal(document.asyncapi, '3.0.0');
  t.strictSame(Object.keys(document.operations).toSorted(), [...messages.keys(), 'connect', 'frames'].toSorted());
  t.strictSame(
    eventTypes.filter((type) => document.components.messages[type] === undefined),
    [],
  );
  t.end();
});

t.test('every operation has a description and a tag, and every tag a description', (t) => {
  const { operations, info, components } = document;
  for (const [name, { description, tags }] of Object.entries(operations)) {
    t.match(description, /^[A-Z].+\.$/, name);
    t.equal(tags.length, 1, name);
  }
  const names = Object.keys(components.tags);
  t.strictSame(names, names.toSorted());
  for (const [name, tag] of Object.entries(components.tags)) t.match(tag, { name, description: /^[A-Z].+\.$/ });
  t.strictSame(
    info.tags,
    names.map((name) => ({ $ref: `#/components/tags/${name}` })),
  );
  t.strictSame(
    [...new Set(Object.values(operations).flatMap(({ tags }) => tags.map(({ $ref }) => $ref)))].toSorted(),
    info.tags.map(({ $ref }) => $ref),
    'every tag is used',
  );
  t.end();
});

t.test('every reference resolves', (t) => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = '']) => path);
  const missing = refs.filter(
    (path) =>
      path.split('/').reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], document) ===
      undefined,
  );
  t.strictSame(missing, []);
  t.end();
});

t.test('the server serves it without a credential', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('served');
  const { status, json } = await tenant.request('GET', '/asyncapi.json', { key: null });
  t.equal(status, 200);
  t.strictSame(json, document);
});

t.test('the messages and frames of a session are as it says', async (t) => {
  const service = await startService(t);
  const tenant = await service.tenant('session');
  const ann = await tenant.join({ userId: 'ann', name: 'Ann' });
  const bob = await tenant.join({ userId: 'bob', role: 'moderator' });
  let id = 0;
  const send = async (type: string, data?: unknown): Promise<Record<string, unknown>> => {
    const request = { type, id: ++id, ...(data === undefined ? {} : { data }) };
    t.ok(fits(`${type}.request`, JSON.parse(JSON.stringify(request))), `${type}: the request`);
    const answer = await ann.request(type, data);
    t.equal(answer.type, 'ok', `${type}: ${answer.error?.message}`);
    t.ok(fits(`${type}.ok`, answer), `${type}: ${JSON.stringify(answer)}`);
    return answer.data as Record<string, unknown>;
  };
  await bob.request('room.join', { roomId: 'room' });
  await send('room.get', { roomId: 'room' });
  await send('room.join', { roomId: 'room', state: { page: 1 } });
  const { thread } = (await send('thread.create', {
    roomId: 'room',
    body: 'Hi @bob',
    mentions: ['bob'],
    position: { x: 0.5, y: 0.5 },
  })) as { thread: { id: string; comments: readonly { id: string }[] } };
  const threadId = thread.id;
  const commentId = thread.comments[0]?.id ?? '';
  const { reaction } = (await send('reaction.add', { commentId, emoji: '👍' })) as { reaction: { id: string } };
  await send('comment.update', { commentId, body: 'Hello @bob' });
  await bob.request('comment.create', { threadId, body: 'Hello' });
  await send('comment.create', { threadId, body: 'Again' });
  for (const type of [
    'thread.resolve',
    'thread.reopen',
    'thread.get',
    'thread.subscription',
    'thread.subscribe',
    'thread.unsubscribe',
    'thread.mute',
  ])
    await send(type, { threadId });
  await send('thread.update', { threadId, metadata: { a: 1 } });
  await send('room.get', { roomId: 'room', includeComments: true, includeUsers: true });
  await send('users.lookup', { ids: ['ann', 'bob'] });
  await send('notifications.list', {});
  await send('notifications.read', { all: true });
  await send('notification-settings.get');
  await send('notification-settings.put', { email: { reply: false } });
  await send('presence.update', { roomId: 'room', state: { page: 2 } });
  await send('cursor', { roomId: 'room', x: 0, y: 1 });
  await send('typing', { roomId: 'room', threadId: null, typing: true });
  await send('room.broadcast', { roomId: 'room', data: [1] });
  await send('reaction.remove', { reactionId: reaction.id });
  await send('comment.delete', { commentId });
  await send('auth.refresh', { token: await tenant.token({ userId: 'ann' }) });
  await send('pong');
  await send('room.leave', { roomId: 'room' });
  t.ok(fits('error', await ann.request('thread.get', { threadId: 'unknown' })));
  await until(() => bob.frames.some(({ type }) => type === 'room.broadcast'));
  for (const frame of [...ann.frames, ...bob.frames])
    if (frame.type !== 'ok') t.ok(fits(frame.type, frame), JSON.stringify(frame));
});
