import t from 'tap';
import type { Comment } from '../../src/model/comment.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { startService } from '../helpers/service.ts';
import { addComment, addThread, addUser, type CreatedThread, done, type Failure } from '../helpers/writer.ts';

// Threads, and the rooms that hold them.

const service = await startService(t);
const tenant = await service.tenant('threads');
await addUser(tenant, 'ann');

const create = (roomId: string, body: unknown) =>
  tenant.request<Failure & { thread: CreatedThread }>('POST', `/rooms/${roomId}/threads`, { body });

t.test('GET | /rooms/:roomId/threads | none | 200 `{ items: [ThreadListItem] }`', async (t) => {
  t.strictSame(
    done(200, await tenant.request('GET', '/rooms/never-used/threads')),
    { items: [] },
    'a room that was never used has none',
  );
  const older = await addThread(tenant, 'list');
  service.clock.advance(1000);
  const newer = await addThread(tenant, 'list');
  const answer = done(200, await tenant.request<{ items: Thread[] }>('GET', '/rooms/list/threads'));
  t.strictSame(Object.keys(answer), ['items']);
  t.strictSame(
    answer.items.map(({ id }) => id),
    [newer.id, older.id],
    'all of the room, newest first',
  );
});

t.test('POST | /rooms/:roomId/threads | body below | 201 `{ thread: {...} }`', async (t) => {
  const { status, json } = await create('post', { userId: 'ann', body: 'Deployment failed' });
  t.equal(status, 201);
  t.strictSame(Object.keys(json), ['thread']);
  t.match(json.thread, {
    roomId: 'post',
    resolved: false,
    comments: [{ userId: 'ann', body: 'Deployment failed', mentions: [] }],
  });
});

t.test(
  'GET | /threads/:threadId | none | 200 `{ thread: {...}, comments: [Comment] }` (the thread with all its comments)',
  async (t) => {
    const { id } = await addThread(tenant, 'get');
    const added: Comment[] = [];
    for (let i = 0; i < 30; i++) added.push(await addComment(tenant, id, { body: `No ${i}` }));
    const answer = done(200, await tenant.request<{ thread: Thread; comments: Comment[] }>('GET', `/threads/${id}`));
    t.strictSame(Object.keys(answer), ['thread', 'comments']);
    t.equal(answer.comments.length, 31);
    t.strictSame(answer.comments.slice(1), added, 'in the order in which they were written');
  },
);

t.test(
  'PATCH | /threads/:threadId | `{ resolved: boolean }` | 200 `{ threadId: string, resolved: boolean }`',
  async (t) => {
    const { id } = await addThread(tenant, 'patch');
    for (const resolved of [true, true, false, false]) {
      t.strictSame(
        done(200, await tenant.request('PATCH', `/threads/${id}`, { body: { resolved } })),
        { threadId: id, resolved },
        'exactly these fields',
      );
    }
  },
);

t.test('DELETE | /threads/:threadId | none | 200 `{ deleted: true }`', async (t) => {
  const { id } = await addThread(tenant, 'delete');
  t.strictSame(done(200, await tenant.request('DELETE', `/threads/${id}`)), { deleted: true });
  t.equal((await tenant.request('DELETE', `/threads/${id}`)).status, 404);
});

t.test(
  'Create-thread body | userId | string | yes | author’s user id; the user must have connected before',
  async (t) => {
    t.match(await create('author', { body: 'Hi' }), { status: 400, json: { error: 'userId is required' } });
    t.match(await create('author', { userId: 'dan', body: 'Hi' }), {
      status: 400,
      json: { error: 'Unknown user: dan. The user must have connected before, or be created with PUT /users/dan' },
    });
    t.match(
      (await tenant.request('GET', '/rooms/author')).json,
      { room: { createdAt: null } },
      'a refused thread makes no room',
    );
    const socket = await tenant.join({ userId: 'dan' });
    await socket.close();
    t.match(await create('author', { userId: 'dan', body: 'Hi' }), {
      status: 201,
      json: { thread: { userId: 'dan', comments: [{ userId: 'dan' }] } },
    });
  },
);

t.test(
  'Create-thread body | userId | where the environment does not require known users, the write makes the user',
  async (t) => {
    const open = await service.tenant('open', { requireKnownUsers: false });
    await addThread(open, 'page', { userId: 'new one' });
    t.match(done(200, await open.request('GET', '/users/new%20one')), {
      user: { userId: 'new one', lastSeenAt: null },
    });
  },
);

t.test('Create-thread body | body | string | yes | text of the first comment', async (t) => {
  t.match(await create('body', { userId: 'ann' }), { status: 400, json: { error: 'body is required' } });
  for (const body of ['Grüße 😀\n\u2028\t"quoted" \\ </script>', '\u0000\u001f\u007f', ' padded ']) {
    const { id, comments } = (await create('body', { userId: 'ann', body })).json.thread;
    t.equal(comments[0]?.body, body, 'as it was sent');
    for (const path of [
      `/threads/${id}`,
      `/threads/${id}/comments`,
      '/rooms/body?include=comments',
      '/events?limit=1000',
    ]) {
      t.ok((await tenant.request('GET', path)).text.includes(JSON.stringify(body)), `and so it is read: ${path}`);
    }
  }
});

t.test('Create-thread body | mentions | array of string | no | user ids to mention', async (t) => {
  const { json } = await create('mentions', {
    userId: 'ann',
    body: 'Hi',
    mentions: ['zoe', 'ann', 'zoe', 'not yet known'],
  });
  t.strictSame(
    json.thread.comments[0]?.mentions,
    ['zoe', 'ann', 'not yet known'],
    'without repetition, order kept, unknown ones too',
  );
});

t.test('Create-thread body | position | object | no | x and y required within it', async (t) => {
  t.match(await create('position', { userId: 'ann', body: 'Hi', position: {} }), {
    status: 400,
    json: { error: /^position\.[xy] is required$/ },
  });
  for (const [x, y] of [
    [0, 1],
    [1, 0],
    [0.5, 1e-7],
  ])
    t.strictSame((await create('position', { userId: 'ann', body: 'Hi', position: { x, y } })).json.thread.position, {
      x,
      y,
    });
});

t.test('The created thread appears instantly in all connected browsers', async (t) => {
  const sockets = await Promise.all(['ann', 'bob'].map((userId) => tenant.join({ userId })));
  const { id } = await addThread(tenant, 'live');
  for (const socket of sockets) {
    t.match(await socket.frame('thread.created'), { roomId: 'live', data: { thread: { id } } });
    await socket.close();
  }
});

t.test('additive | id | the client’s own, 8 to 64 of A–Z a–z 0–9 _ - | one that exists is 409', async (t) => {
  for (const id of ['own-id_8', 'x'.repeat(64)]) {
    t.equal((await create('own', { id, userId: 'ann', body: 'Hi' })).json.thread.id, id);
    for (const room of ['own', 'another'])
      t.equal((await create(room, { id, userId: 'ann', body: 'Other' })).status, 409);
  }
  for (const id of ['short', 'x'.repeat(65), 'with space', 'sl/ash/es', 'ümläutüü'])
    t.equal((await create('own', { id, userId: 'ann', body: 'Hi' })).status, 400, id);
});

t.test('additive | metadata | with a filter in lists', async (t) => {
  const metadata = { build: 7, ok: true, 'a.b': 'c' };
  const { json } = await create('metadata', { userId: 'ann', body: 'Hi', metadata });
  await create('metadata', { userId: 'ann', body: 'Hi' });
  t.strictSame(json.thread.metadata, metadata);
  for (const filter of [
    'metadata.build=7',
    'metadata.ok=true',
    'metadata.a.b=c',
    'metadata.build=7&metadata.ok=true',
  ]) {
    const { items } = done(200, await tenant.request<{ items: Thread[] }>('GET', `/rooms/metadata/threads?${filter}`));
    t.strictSame(
      items.map(({ id }) => id),
      [json.thread.id],
      filter,
    );
  }
});

t.test('GET | /rooms | list all rooms', async (t) => {
  const fresh = await service.tenant('rooms');
  await addUser(fresh, 'ann');
  t.strictSame(done(200, await fresh.request('GET', '/rooms')), { items: [] });
  for (const room of ['a', 'b', 'c']) {
    await addThread(fresh, room);
    service.clock.advance(1000);
  }
  const { items } = done(200, await fresh.request<{ items: Room[] }>('GET', '/rooms'));
  t.strictSame(
    items.map(({ roomId }) => roomId),
    ['c', 'b', 'a'],
    'newest first',
  );
});

t.test('GET | /rooms/:roomId | get a room with its threads: `{ room, threads }`', async (t) => {
  const { id, comments } = await addThread(tenant, 'whole');
  const reply = await addComment(tenant, id);
  const answer = done(
    200,
    await tenant.request<{ room: Room; threads: (Thread & { comments?: Comment[] })[] }>('GET', '/rooms/whole'),
  );
  t.strictSame(Object.keys(answer), ['room', 'threads']);
  const { items } = done(200, await tenant.request<{ items: Thread[] }>('GET', '/rooms/whole/threads'));
  t.strictSame(answer.threads, items, 'the threads are those of the list');
  const full = done(200, await tenant.request<typeof answer>('GET', '/rooms/whole?include=comments'));
  t.strictSame(full.threads, [{ ...items[0], comments: [...comments, reply] }], 'include=comments adds them');
  t.match(await tenant.request('GET', '/rooms/whole?include=all'), {
    status: 400,
    json: { error: 'include must be comments' },
  });
});

t.test(
  'GET | /rooms/:roomId | of a room that nobody used yet | empty, as its list is, and not created by reading',
  async (t) => {
    const room = {
      id: 'unused',
      roomId: 'unused',
      threadCount: 0,
      openThreadCount: 0,
      metadata: {},
      createdAt: null,
      updatedAt: null,
      lastActivityAt: null,
    };
    for (const query of ['', '', '?limit=1', '?include=comments,users']) {
      const answer = done(200, await tenant.request<object>('GET', `/rooms/unused${query}`));
      t.strictSame(answer, { room, threads: [], ...(query.includes('users') ? { users: {} } : {}) }, query);
    }
    t.strictSame(done(200, await tenant.request('GET', '/rooms/unused/threads')), { items: [] });
    const { items } = done(200, await tenant.request<{ items: Room[] }>('GET', '/rooms?prefix=unused'));
    t.strictSame(items, []);
    t.match(
      await tenant.request('PATCH', '/rooms/unused', { body: { metadata: {} } }),
      { status: 404, json: { error: 'Room not found' } },
      'what changes a room needs one',
    );
    await addThread(tenant, 'unused');
    t.match(done(200, await tenant.request('GET', '/rooms/unused')), { room: { threadCount: 1, createdAt: /^2/ } });
  },
);

t.test('Room | its counts and times follow what happens in it', async (t) => {
  const room = async () => done(200, await tenant.request<{ room: Room }>('GET', '/rooms/counted')).room;
  const at = () => new Date(service.clock.now()).toISOString();
  const one = await addThread(tenant, 'counted');
  const createdAt = at();
  t.match(await room(), { threadCount: 1, openThreadCount: 1, createdAt, lastActivityAt: createdAt });
  service.clock.advance(1000);
  const two = await addThread(tenant, 'counted');
  t.match(await room(), { threadCount: 2, openThreadCount: 2, createdAt, lastActivityAt: at() });
  service.clock.advance(1000);
  await tenant.request('PATCH', `/threads/${one.id}`, { body: { resolved: true } });
  t.match(await room(), { threadCount: 2, openThreadCount: 1, lastActivityAt: at() });
  service.clock.advance(1000);
  await tenant.request('DELETE', `/threads/${one.id}`);
  t.match(await room(), { threadCount: 1, openThreadCount: 1, lastActivityAt: at() });
  service.clock.advance(1000);
  await addComment(tenant, two.id);
  t.match(await room(), { threadCount: 1, openThreadCount: 1, lastActivityAt: at() });
  await tenant.request('DELETE', `/threads/${two.id}`);
  t.match(await room(), { threadCount: 0, openThreadCount: 0, createdAt }, 'a room outlives its threads');
});
