import t from 'tap';
import { editComment } from '../../src/domain/comments/comments.ts';
import { getRoom, listRooms } from '../../src/domain/rooms/rooms.ts';
import {
  createThread,
  deleteThread,
  getThread,
  listThreads,
  patchThread,
  setResolved,
} from '../../src/domain/comments/threads.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { addComment, createWorld, itemsOf, query, START, startThread } from './world.ts';

const at = (offset: number): string => new Date(START + offset).toISOString();

await t.test('creating a thread returns it with its first comment, and the event contains both', async (t) => {
  const world = await createWorld(t);
  const position = { y: 1, x: 0, path: '/body', selector: '#x', elementOffsetX: -3.5, scrollY: 1e9, surprise: 1 };
  const input = { userId: 'ann', body: 'first', mentions: ['bob'], position, metadata: { build: 'a' } };
  const outcome = await createThread(world.ctx, world.backend, 'päge/1', input, null);
  t.equal(outcome.status, 201);
  const { thread } = JSON.parse(outcome.body) as { thread: Thread & { comments: Comment[] } };
  const [comment] = thread.comments;
  t.match(comment, {
    threadId: thread.id,
    userId: 'ann',
    body: 'first',
    mentions: ['bob'],
    metadata: {},
    createdAt: at(0),
    editedAt: null,
  });
  const shown = { x: 0, y: 1, selector: '#x', path: '/body', elementOffsetX: -3.5, scrollY: 1e9 };
  t.same(Object.keys(thread).slice(0, 6), ['id', 'roomId', 'resolved', 'position', 'comments', 'createdAt']);
  const { comments: _, ...listed } = thread;
  t.same(listed, {
    id: thread.id,
    roomId: 'päge/1',
    resolved: false,
    position: shown,
    createdAt: at(0),
    positionX: 0,
    positionY: 1,
    metadata: { build: 'a' },
    commentCount: 1,
    userId: 'ann',
    updatedAt: at(0),
    resolvedAt: null,
    resolvedBy: null,
  });
  const events = await world.events();
  t.equal(events.length, 1);
  t.match(events[0], {
    type: 'thread.created',
    roomId: 'päge/1',
    threadId: thread.id,
    actor: { userId: 'ann', via: 'rest' },
  });
  t.same(events[0]?.data, { thread: listed, comment });
  t.same(JSON.parse(await getThread(world.peer, world.backend, thread.id)), { thread: listed, comments: [comment] });
});

await t.test('a thread without a position has null for its coordinates', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  t.match(JSON.parse(await getThread(world.ctx, world.backend, threadId)), {
    thread: { position: null, positionX: null, positionY: null },
  });
});

await t.test('bad rooms, authors, positions and taken ids are refused, and leave no room behind', async (t) => {
  const world = await createWorld(t);
  const create = (roomId: string, fields: object = {}) =>
    createThread(world.ctx, world.backend, roomId, { userId: 'ann', body: 'x', ...fields }, null);
  for (const roomId of ['', 'x'.repeat(513), 'a\u0007', '\ud800'])
    await t.rejects(create(roomId), { code: 'invalid_request', message: /^roomId must/ });
  await t.rejects(create('room', { userId: 'nobody' }), { code: 'unknown_user' });
  await t.rejects(create('room', { position: { x: 2, y: 0 } }), { message: 'position.x must be between 0 and 1' });
  t.same(itemsOf(await listRooms(world.ctx, world.backend, query('rooms'))), []);
  await create('x'.repeat(128), { id: 'chosen-id' });
  await t.rejects(create('room', { id: 'chosen-id' }), { code: 'id_taken' });
  await t.rejects(createThread(world.ctx, { ...world.ann, role: 'viewer' }, 'room', {}, null), { code: 'forbidden' });
  await t.rejects(createThread(world.ctx, { ...world.backend, rooms: ['b'] }, 'room', {}, null), { code: 'forbidden' });
});

await t.test('resolving and reopening emit one event, and repeating them changes nothing', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  world.clock.advance(10);
  t.equal(
    await patchThread(world.ctx, world.ann, threadId, { resolved: true }),
    `{"threadId":"${threadId}","resolved":true}`,
  );
  world.clock.advance(10);
  t.equal(await setResolved(world.peer, world.bob, threadId, true), `{"threadId":"${threadId}","resolved":true}`);
  const resolved = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as { thread: Thread };
  t.match(resolved.thread, { resolved: true, resolvedAt: at(10), resolvedBy: 'ann', updatedAt: at(10) });
  const emitted = (await world.events()).filter(({ type }) => type === 'thread.resolved');
  t.equal(emitted.length, 1);
  t.same(emitted[0]?.data, resolved.thread);
  await setResolved(world.ctx, world.backend, threadId, false);
  const reopened = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as { thread: Thread };
  t.match(reopened.thread, { resolved: false, resolvedAt: null, resolvedBy: null, updatedAt: at(20) });
  t.match((await world.events()).at(-1), {
    type: 'thread.reopened',
    actor: { userId: null, via: 'rest' },
    data: reopened.thread,
  });
  await t.rejects(patchThread(world.ctx, world.backend, threadId, { resolved: 1 }), {
    message: 'resolved must be a boolean',
  });
  await t.rejects(patchThread(world.ctx, world.backend, 'th_none', { resolved: true }), {
    code: 'thread_not_found',
    message: 'Thread not found',
  });
  await t.rejects(patchThread(world.ctx, { ...world.ann, role: 'viewer' }, threadId, {}), { code: 'forbidden' });
});

await t.test('many concurrent resolves and reopens all succeed', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      setResolved(i % 2 === 0 ? world.ctx : world.peer, world.backend, threadId, i % 4 < 2),
    ),
  );
  const { thread } = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as { thread: Thread };
  const { room } = JSON.parse((await getRoom(world.ctx, world.backend, 'room', { includeComments: false })).text) as {
    room: Room;
  };
  t.equal(room.openThreadCount, thread.resolved ? 0 : 1);
});

await t.test('deleting a thread deletes its comments and lowers the counts of the room, which stays', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const kept = await startThread(world);
  for (let i = 0; i < 3; i++) await addComment(world, threadId);
  await addComment(world, threadId, { id: 'chosen-gone' });
  await addComment(world, kept.threadId, { id: 'chosen-kept' });
  await setResolved(world.ctx, world.backend, threadId, true);
  await t.rejects(deleteThread(world.ctx, world.bob, threadId), { code: 'forbidden' });
  t.equal(await deleteThread(world.ctx, world.ann, threadId), '{"deleted":true}');
  await t.rejects(deleteThread(world.ctx, world.ann, threadId), { code: 'thread_not_found' });
  t.match((await world.events()).at(-1), { type: 'thread.deleted', roomId: 'room', threadId, data: { threadId } });
  const { room, threads } = JSON.parse(
    (await getRoom(world.peer, world.backend, 'room', { includeComments: false })).text,
  ) as { room: Room; threads: Thread[] };
  t.match(room, { threadCount: 1, openThreadCount: 1 });
  t.same(
    threads.map(({ id }) => id),
    [kept.threadId],
  );
  t.same(
    (await world.ctx.store.range(`e/${world.environment.id}/c`)).map(({ key }) => key),
    ['chosen-kept'],
  );
  await deleteThread(world.ctx, world.backend, kept.threadId);
  t.match(JSON.parse((await getRoom(world.ctx, world.backend, 'room', { includeComments: false })).text), {
    room: { threadCount: 0 },
    threads: [],
  });
});

await t.test('the threads of a room are listed newest first, in pages and with every filter', async (t) => {
  const world = await createWorld(t);
  t.same(itemsOf(await listThreads(world.ctx, world.backend, 'unused', query('threads'))), []);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    world.clock.advance(i === 3 ? 0 : 10);
    ids.push(
      (
        await startThread(world, 'room', {
          userId: i === 0 ? 'bob' : 'ann',
          metadata: { n: i, even: i % 2 === 0, name: 'x' },
        })
      ).threadId,
    );
  }
  await startThread(world, 'room2');
  const [first, second, third] = ids as [string, string, string];
  world.clock.advance(100);
  await addComment(world, second, { userId: 'bob', mentions: ['cy'] });
  await setResolved(world.ctx, world.backend, third, true);
  const list = (search: string) => listThreads(world.ctx, world.backend, 'room', query('threads', search));
  const idsOf = async (search: string) => itemsOf<Thread>(await list(search)).map(({ id }) => id);
  t.same(await idsOf(''), ids.toReversed());
  t.same(await idsOf('order=asc'), ids);
  t.same(await idsOf('resolved=true'), [third]);
  t.equal((await idsOf('resolved=false')).length, 4);
  t.same(await idsOf('userId=bob'), [first]);
  t.same(await idsOf('participantId=bob'), [second, first]);
  t.same(await idsOf('mentions=cy'), [second]);
  t.same(await idsOf('metadata.n=3'), [ids[3]]);
  t.same(await idsOf('metadata.even=true&metadata.name=x'), [ids[4], ids[2], ids[0]]);
  t.same(await idsOf('metadata.toString=x'), []);
  t.same(await idsOf(`createdSince=${at(30)}`), [ids[4], ids[3], ids[2]]);
  t.same((await idsOf(`updatedSince=${at(140)}`)).toSorted(), [second, third].toSorted());
  t.same((await idsOf('sort=updatedAt')).slice(0, 2).toSorted(), [second, third].toSorted());
  for (const search of [
    '',
    'order=asc',
    'sort=updatedAt',
    'resolved=false',
    'sort=updatedAt&order=asc&resolved=false',
  ]) {
    const collected: string[] = [];
    for (let cursor = ''; ;) {
      const page = await list(`${search}&limit=2${cursor}`);
      collected.push(...itemsOf<Thread>(page).map(({ id }) => id));
      if (page.nextCursor === null) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    t.same(collected, await idsOf(search), search);
  }
});

await t.test('cached lists and threads follow every change immediately, on every worker', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const read = async (): Promise<string> => {
    const texts = [];
    for (const worker of [world.ctx, world.peer]) {
      const list = Buffer.from((await listThreads(worker, world.backend, 'room', query('threads'))).text).toString();
      texts.push(
        `${list} ${await getThread(worker, world.backend, threadId)} ${(await getRoom(worker, world.backend, 'room', { includeComments: true })).text}`,
      );
    }
    t.equal(texts[0], texts[1]);
    return texts[0] ?? '';
  };
  const seen = new Set([await read()]);
  const changes = [
    () => addComment(world, threadId),
    () => editComment(world.peer, world.backend, commentId, { body: 'edited' }),
    () => setResolved(world.peer, world.backend, threadId, true),
    () => startThread(world),
  ];
  for (const change of changes) {
    world.clock.advance(1);
    await change();
    seen.add(await read());
  }
  t.equal(seen.size, changes.length + 1);
});

await t.test('rooms are listed by scope and filter, and one room is read with its threads and comments', async (t) => {
  const world = await createWorld(t);
  for (const roomId of ['a/1', 'a/2', 'b~ü']) {
    world.clock.advance(10);
    await startThread(world, roomId);
  }
  world.clock.advance(10);
  await startThread(world, 'a/1');
  const list = (search: string, actor = world.backend) => listRooms(world.ctx, actor, query('rooms', search));
  const idsOf = async (search: string, actor = world.backend) =>
    itemsOf<Room>(await list(search, actor)).map(({ id }) => id);
  t.same(await idsOf(''), ['b~ü', 'a/2', 'a/1']);
  t.same(await idsOf('order=asc'), ['a/1', 'a/2', 'b~ü']);
  t.same(await idsOf('sort=updatedAt'), ['a/1', 'b~ü', 'a/2']);
  t.same(await idsOf('prefix=a/'), ['a/2', 'a/1']);
  t.same(await idsOf(`updatedSince=${at(30)}`), ['b~ü', 'a/1']);
  t.same(await idsOf('', { ...world.backend, rooms: ['a/2', 'b*'] }), ['b~ü', 'a/2']);
  const page = await list('limit=1');
  t.same(await idsOf(`limit=1&cursor=${page.nextCursor}`), ['a/2']);
  const { room, threads } = JSON.parse(
    (await getRoom(world.ctx, world.backend, 'a/1', { includeComments: true })).text,
  ) as { room: Room; threads: (Thread & { comments: Comment[] })[] };
  t.match(room, {
    id: 'a/1',
    roomId: 'a/1',
    threadCount: 2,
    openThreadCount: 2,
    metadata: {},
    createdAt: at(10),
    updatedAt: at(40),
    lastActivityAt: at(40),
  });
  t.same(
    threads.map(({ createdAt, comments }) => [createdAt, comments.length]),
    [
      [at(40), 1],
      [at(10), 1],
    ],
  );
  await t.rejects(getRoom(world.ctx, world.backend, 'nowhere', { includeComments: false }), {
    code: 'room_not_found',
    message: 'Room not found',
  });
  await t.rejects(getRoom(world.ctx, { ...world.backend, rooms: ['b'] }, 'a/1', { includeComments: false }), {
    code: 'forbidden',
  });
});
