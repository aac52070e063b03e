import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { type FieldRow, holdsFields } from '../helpers/field-table.ts';
import { startService } from '../helpers/service.ts';
import { addComment, addThread, addUser, done } from '../helpers/writer.ts';

// The records that leave the server (docs/api.md).

const service = await startService(t);
const tenant = await service.tenant('resources');
await addUser(tenant, 'ann', { name: 'Ann', email: 'ann@example.com', metadata: { team: 'red' } });

const position = {
  x: 0.25,
  y: 1,
  selector: '#main > p',
  path: 'html/body/p[1]',
  elementOffsetX: -3.5,
  elementOffsetY: 0,
  scrollX: 0,
  scrollY: 1200.25,
};
const created = await addThread(tenant, 'page', { position, mentions: ['bob', 'eve'], metadata: { build: 7 } });
const [first] = created.comments;

const threadListItem: readonly FieldRow[] = [
  ['id', 'string', 'thread id'],
  ['roomId', 'string', 'owning room'],
  ['resolved', 'boolean', 'false when created'],
  ['positionX', '0 to 1', '0 to 1'],
  ['positionY', '0 to 1', '0 to 1'],
  ['createdAt', 'timestamp'],
  ['updatedAt', 'timestamp'],
];
const addedToThreads: readonly FieldRow[] = [
  ['position', 'object or null'],
  ['metadata', 'object'],
  ['commentCount', 'count'],
  ['userId', 'string', 'creator'],
  ['resolvedAt', 'timestamp or null'],
  ['resolvedBy', 'string or null'],
];
const comment: readonly FieldRow[] = [
  ['id', 'string'],
  ['threadId', 'string', 'owning thread'],
  ['userId', 'string', 'author'],
  ['body', 'string', 'comment text'],
  ['mentions', 'array of string', 'user ids mentioned; empty array when none'],
  ['createdAt', 'timestamp'],
  ['editedAt', 'timestamp or null', 'null until the comment is edited'],
];
const addedToComments: readonly FieldRow[] = [
  ['attachments', 'array'],
  ['reactions', 'array'],
];

t.test('Room | GET /rooms and GET /rooms/:roomId', async (t) => {
  const { items } = done(200, await tenant.request<{ items: Room[] }>('GET', '/rooms'));
  const { room } = done(200, await tenant.request<{ room: Room }>('GET', '/rooms/page'));
  t.strictSame(items, [room], 'the same record in both');
  t.equal(room.id, room.roomId, 'id = roomId');
  holdsFields(t, room, [
    ['id', 'string'],
    ['roomId', 'string'],
    ['threadCount', 'count'],
    ['openThreadCount', 'count'],
    ['metadata', 'object'],
    ['createdAt', 'timestamp'],
    ['updatedAt', 'timestamp'],
    ['lastActivityAt', 'timestamp'],
  ]);
  t.match(room, { roomId: 'page', threadCount: 1, openThreadCount: 1, metadata: {} });
});

t.test('Thread | as an item in a thread list', async (t) => {
  const { items } = done(200, await tenant.request<{ items: Thread[] }>('GET', '/rooms/page/threads'));
  holdsFields(t, items[0], threadListItem);
  holdsFields(t, items[0], addedToThreads);
  t.match(items[0], {
    id: created.id,
    roomId: 'page',
    resolved: false,
    positionX: 0.25,
    positionY: 1,
    userId: 'ann',
    commentCount: 1,
    metadata: { build: 7 },
    resolvedAt: null,
    resolvedBy: null,
  });
  t.strictSame(items[0]?.position, position);
});

t.test('Thread | as the `thread` object in the create response', async (t) => {
  holdsFields(t, created, [
    ['id', 'string'],
    ['roomId', 'string'],
    ['resolved', 'boolean', 'false'],
    ['position', 'object', 'Position as sent; the response shows x and y'],
    ['comments', 'array of object', 'contains the initial comment'],
    ['createdAt', 'timestamp'],
  ]);
  t.equal(created.resolved, false);
  t.strictSame(created.position, position, 'position echoes what was sent');
  t.equal(created.comments.length, 1);
  holdsFields(t, first, [
    ['id', 'string'],
    ['userId', 'string'],
    ['body', 'string'],
    ['mentions', 'array of string'],
    ['createdAt', 'timestamp'],
  ]);
  t.match(first, { userId: 'ann', body: 'Hello', mentions: ['bob', 'eve'], threadId: created.id });
});

t.test('Thread | the `thread` object in the get-thread response', async (t) => {
  const { thread, comments } = done(
    200,
    await tenant.request<{ thread: Thread; comments: Comment[] }>('GET', `/threads/${created.id}`),
  );
  holdsFields(t, thread, [['id', 'string'], ['resolved', 'boolean'], ...threadListItem, ...addedToThreads]);
  t.strictSame(thread.position, position);
  t.strictSame(comments, created.comments, 'the comments are those of the create response');
});

t.test('Thread | without a position positionX, positionY and position are null, and there', async (t) => {
  const { id, position: none } = await addThread(tenant, 'plain');
  t.equal(none, null);
  const { thread } = done(200, await tenant.request<{ thread: Thread }>('GET', `/threads/${id}`));
  for (const field of ['positionX', 'positionY', 'position'] as const) {
    t.ok(Object.hasOwn(thread, field), `${field} is not omitted`);
    t.equal(thread[field], null, field);
  }
});

const positionRows: [field: string, type: string, required: 'yes' | 'no', meaning: string][] = [
  ['x', 'number', 'yes', 'horizontal position, range 0 to 1'],
  ['y', 'number', 'yes', 'vertical position, range 0 to 1'],
  ['selector', 'string', 'no', 'CSS selector of the target element'],
  ['path', 'string', 'no', 'DOM path to the target element'],
  ['elementOffsetX', 'number', 'no', 'horizontal offset within the target element'],
  ['elementOffsetY', 'number', 'no', 'vertical offset within the target element'],
  ['scrollX', 'number', 'no', 'page scroll X at the time of pinning'],
  ['scrollY', 'number', 'no', 'page scroll Y at the time of pinning'],
];
for (const [field, type, required, meaning] of positionRows) {
  t.test(`Position object | ${field} | ${type} | ${required} | ${meaning}`, async (t) => {
    const { [field]: value, ...others } = position as Record<string, unknown>;
    t.type(value, type);
    const without = await tenant.request<{ error: string }>('POST', '/rooms/positions/threads', {
      body: { userId: 'ann', body: 'Hi', position: others },
    });
    t.equal(without.status, required === 'yes' ? 400 : 201, 'left out');
    if (required === 'yes') t.equal(without.json.error, `position.${field} is required`);
    const wrong = type === 'number' ? String(value) : 7;
    const refused = await tenant.request<{ error: string }>('POST', '/rooms/positions/threads', {
      body: { userId: 'ann', body: 'Hi', position: { ...others, [field]: wrong } },
    });
    t.equal(refused.status, 400, 'of another type, which is not coerced');
    t.equal(refused.json.error, `position.${field} must be a ${type}, not ${JSON.stringify(wrong)}`);
  });
}

t.test('Comment', async (t) => {
  service.clock.advance(1000);
  const plain = await addComment(tenant, created.id, { body: 'Second' });
  const { items } = done(200, await tenant.request<{ items: Comment[] }>('GET', `/threads/${created.id}/comments`));
  for (const found of [first, plain, ...items]) {
    holdsFields(t, found, comment);
    holdsFields(t, found, addedToComments);
  }
  t.strictSame(plain.mentions, [], 'mentions: empty array when none');
  t.equal(plain.editedAt, null, 'editedAt: null until the comment is edited');
  service.clock.advance(1000);
  const { comment: edited } = done(
    200,
    await tenant.request<{ comment: Comment }>('PATCH', `/comments/${plain.id}`, { body: { body: 'Third' } }),
  );
  t.equal(edited.editedAt, new Date(service.clock.now()).toISOString(), 'editedAt: set to the edit time by an edit');
  t.equal(edited.createdAt, plain.createdAt);
});

t.test('User', async (t) => {
  const { user } = done(200, await tenant.request<{ user: Record<string, unknown> }>('GET', '/users/ann'));
  holdsFields(t, user, [
    ['id', 'string'],
    ['userId', 'string', '= id'],
    ['name', 'string or null'],
    ['avatarUrl', 'string or null'],
    ['email', 'string or null', 'only to sk_'],
    ['kind', 'string', 'user or bot'],
    ['metadata', 'object'],
    ['createdAt', 'timestamp'],
    ['updatedAt', 'timestamp'],
    ['firstSeenAt', 'timestamp or null'],
    ['lastSeenAt', 'timestamp or null', 'null for never-connected'],
    ['online', 'boolean'],
  ]);
  t.match(user, {
    id: 'ann',
    userId: 'ann',
    kind: 'user',
    email: 'ann@example.com',
    lastSeenAt: null,
    firstSeenAt: null,
    online: false,
  });
});

t.test('User | becomes known to the service by having connected', async (t) => {
  t.equal((await tenant.request('GET', '/users/carl')).status, 404);
  const socket = await tenant.join({ userId: 'carl', name: 'Carl' });
  const { user } = done(200, await tenant.request<{ user: unknown }>('GET', '/users/carl'));
  t.match(user, { userId: 'carl', name: 'Carl', online: true, firstSeenAt: /Z$/, lastSeenAt: /Z$/ });
  await addThread(tenant, 'page', { userId: 'carl' });
  await addUser(tenant, 'carl', { name: 'Charles', email: 'carl@example.com' });
  const event = await socket.frame('user.updated');
  t.notOk(Object.hasOwn(event.data ?? {}, 'email'), 'email leaves to sk_ only');
  await socket.close();
});

/** Longer than a key of the store could be if it were percent-encoded. */
const LONG_ADDRESS = `https://shop.example.com/a?q=${'ü/'.repeat(240)}`;

t.test('Room | is identified by roomId, of the client’s choice', async (t) => {
  for (const roomId of [
    'r',
    'https://example.com/a?b=c#d',
    'Straße 7',
    '😀'.repeat(64),
    'x'.repeat(512),
    LONG_ADDRESS,
    '日'.repeat(426),
    '%2F',
    "~!'()*",
  ]) {
    const { roomId: kept } = await addThread(tenant, roomId);
    t.equal(kept, roomId);
    const { room } = done(200, await tenant.request<{ room: Room }>('GET', `/rooms/${encodeURIComponent(roomId)}`));
    t.equal(room.roomId, roomId);
  }
  const { items } = done(
    200,
    await tenant.request<{ items: Room[] }>('GET', `/rooms?prefix=${encodeURIComponent('https://shop')}`),
  );
  t.same(
    items.map(({ roomId }) => roomId.length),
    [LONG_ADDRESS.length],
    'a long id is found in the list of rooms',
  );
  for (const [roomId, why] of [
    ['日'.repeat(427), 'must be at most 1280 bytes of UTF-8'],
    ['x'.repeat(513), 'must be 1 to 512 characters'],
    ['a\u0000b', 'must not contain control characters or lone surrogates'],
    ['a\nb', 'must not contain control characters or lone surrogates'],
  ] as const) {
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/threads', undefined],
      ['POST', '/threads', { userId: 'ann', body: 'Hi' }],
    ] as const) {
      const refused = await tenant.request<{ error: string }>(method, `/rooms/${encodeURIComponent(roomId)}${path}`, {
        body,
      });
      t.equal(refused.status, 400);
      t.ok(refused.json.error.startsWith(`roomId ${why}`), refused.json.error);
    }
  }
});
