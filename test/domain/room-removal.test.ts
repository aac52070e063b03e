import t from 'tap';
import { createComment, listComments } from '../../src/domain/comments/comments.ts';
import type { Actor } from '../../src/domain/access/actor.ts';
import { readState, writeState } from '../../src/domain/rooms/shared-state.ts';
import { deleteRoom, sweepRemovals } from '../../src/domain/rooms/room-removal.ts';
import { getRoom, listRooms, patchRoom } from '../../src/domain/rooms/rooms.ts';
import { deleteThread, getThread, listThreads, setResolved } from '../../src/domain/comments/threads.ts';
import type { Room } from '../../src/model/room.ts';
import type { Thread } from '../../src/model/thread.ts';
import { addComment, createWorld, itemsOf, query, startThread } from './world.ts';

const always = (): boolean => true;

await t.test(
  'a deleted room is unreachable immediately, with its threads, comments and state, and each thread has an event',
  async (t) => {
    const world = await createWorld(t);
    const { ctx, peer, backend } = world;
    const kept = await startThread(world, 'kept');
    const threads = [];
    for (let i = 0; i < 3; i++) threads.push(await startThread(world));
    await setResolved(ctx, backend, threads[1]?.threadId ?? '', true);
    await writeState(ctx, backend, 'room', Buffer.from('x'), false, always);
    const before = (await world.events()).length;
    t.equal(await deleteRoom(ctx, backend, 'room'), '{"deleted":true}');
    await t.rejects(getRoom(peer, backend, 'room', { includeComments: false }), {
      code: 'room_not_found',
      message: 'Room not found',
    });
    t.strictSame(itemsOf(await listThreads(peer, backend, 'room', query('threads'))), []);
    t.strictSame(
      itemsOf<Room>(await listRooms(peer, backend, query('rooms'))).map(({ id }) => id),
      ['kept'],
    );
    for (const { threadId } of threads) {
      await t.rejects(getThread(peer, backend, threadId), { code: 'thread_not_found' });
      await t.rejects(listComments(peer, backend, threadId, query('comments')), { code: 'thread_not_found' });
    }
    t.equal((await readState(peer, backend, 'room', null, always)).record.version, 0);
    const emitted = (await world.events()).slice(before);
    t.strictSame(
      emitted.map(({ type }) => type),
      ['thread.deleted', 'thread.deleted', 'thread.deleted', 'p2p.state.cleared'],
    );
    t.strictSame(
      emitted.slice(0, 3).map(({ data }) => data),
      threads.map(({ threadId }) => ({ threadId })),
    );
    await t.rejects(deleteRoom(ctx, backend, 'room'), { code: 'room_not_found' });
    t.match(JSON.parse(await getThread(peer, backend, kept.threadId)), { thread: { roomId: 'kept' } });
  },
);

await t.test('unreachable comments are removed afterwards, and only those', async (t) => {
  const world = await createWorld(t);
  const { ctx, backend } = world;
  const { threadId } = await startThread(world, 'room', { id: 'my-thread' });
  for (let i = 0; i < 4; i++) await addComment(world, threadId);
  await addComment(world, threadId, { id: 'my-comment' });
  const kept = await startThread(world, 'kept');
  await deleteRoom(ctx, backend, 'room');
  await t.rejects(
    startThread(world, 'room', { id: 'my-thread' }),
    { code: 'id_taken' },
    'its comments would come back',
  );
  t.equal(await sweepRemovals(ctx, world.environment.id), 6);
  t.equal(await sweepRemovals(world.peer, world.environment.id), 0);
  t.strictSame(await ctx.store.range(`e/${world.environment.id}/t/my-thread`), []);
  t.strictSame(await ctx.store.range(`e/${world.environment.id}/c`), []);
  const again = await startThread(world, 'room', { id: 'my-thread' });
  t.equal(itemsOf(await listComments(ctx, backend, again.threadId, query('comments'))).length, 1);
  t.equal(itemsOf(await listComments(ctx, backend, kept.threadId, query('comments'))).length, 1);
});

await t.test('the next thread creates the room again', async (t) => {
  const world = await createWorld(t);
  await startThread(world);
  await patchRoom(world.ctx, world.backend, 'room', { metadata: { old: true } });
  await deleteRoom(world.ctx, world.backend, 'room');
  world.clock.advance(5);
  await startThread(world);
  t.match(JSON.parse((await getRoom(world.ctx, world.backend, 'room', { includeComments: false })).text), {
    room: { threadCount: 1, openThreadCount: 1, metadata: {} },
    threads: [{}],
  });
});

await t.test('threads and comments created while the room is deleted are either kept or deleted with it', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer, backend } = world;
  for (let round = 0; round < 8; round++) {
    const roomId = `room-${round}`;
    const { threadId } = await startThread(world, roomId);
    const { threadId: other } = await startThread(world, roomId);
    const work = [
      deleteRoom(peer, backend, roomId),
      ...Array.from({ length: 3 }, () => startThread(world, roomId)),
      ...Array.from({ length: 3 }, () => createComment(ctx, backend, threadId, { userId: 'ann', body: 'x' }, null)),
      setResolved(ctx, backend, threadId, true),
      deleteThread(ctx, backend, other),
    ];
    for (const outcome of await Promise.allSettled<unknown>(work)) {
      if (outcome.status === 'rejected') t.equal((outcome.reason as { code: string }).code, 'thread_not_found');
    }
    const listed = itemsOf<Thread>(await listThreads(ctx, backend, roomId, query('threads')));
    t.notOk(listed.some(({ id }) => id === threadId));
    if (listed.length === 0) {
      await t.rejects(getRoom(ctx, backend, roomId, { includeComments: false }), { code: 'room_not_found' });
    } else {
      t.match(JSON.parse((await getRoom(ctx, backend, roomId, { includeComments: false })).text), {
        room: { threadCount: listed.length, openThreadCount: listed.length },
      });
    }
    const events = (await world.events()).filter((event) => event.roomId === roomId);
    const living = new Set<string>();
    for (const { type, threadId: id = '' } of events) {
      if (type === 'thread.created') living.add(id);
      if (type === 'thread.deleted') t.ok(living.delete(id), 'deleted once, after it was made');
    }
    t.strictSame([...living].toSorted(), listed.map(({ id }) => id).toSorted(), 'the log comes to what is there');
  }
});

await t.test('rooms can have metadata and be filtered by them', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer, backend } = world;
  await startThread(world, 'a');
  await startThread(world, 'b');
  world.clock.advance(1000);
  const { room } = JSON.parse(await patchRoom(ctx, backend, 'a', { metadata: { site: 'docs', build: 7 } })) as {
    room: Room;
  };
  t.match(room, {
    id: 'a',
    metadata: { site: 'docs', build: 7 },
    updatedAt: '2026-01-02T03:04:06.678Z',
    lastActivityAt: '2026-01-02T03:04:05.678Z',
    threadCount: 1,
  });
  t.match(JSON.parse((await getRoom(peer, backend, 'a', { includeComments: false })).text), { room });
  const found = async (search: string) =>
    itemsOf<Room>(await listRooms(peer, backend, query('rooms', search))).map(({ id }) => id);
  t.strictSame(await found('metadata.site=docs'), ['a']);
  t.strictSame(await found('metadata.site=docs&metadata.build=7'), ['a']);
  t.strictSame(await found('metadata.site=docs&metadata.build=8'), []);
  t.strictSame(await found('metadata.toString=x'), []);
  const emptied = JSON.parse(await patchRoom(ctx, backend, 'a', { metadata: {} })) as { room: Room };
  t.strictSame(emptied.room.metadata, {}, 'metadata are replaced as a whole');
});

await t.test('only keys with the permission change and delete rooms, and only existing ones', async (t) => {
  const world = await createWorld(t);
  await startThread(world);
  const { ctx, backend } = world;
  const changes = [
    (actor: Actor, roomId: string) => patchRoom(ctx, actor, roomId, { metadata: {} }),
    (actor: Actor, roomId: string) => deleteRoom(ctx, actor, roomId),
  ];
  for (const actor of [
    world.ann,
    { ...world.ann, role: 'moderator' as const },
    { ...backend, scope: 'read' as const },
    { ...backend, rooms: ['other'] },
  ]) {
    for (const change of changes) await t.rejects(change(actor, 'room'), { code: 'forbidden' });
  }
  for (const change of changes) await t.rejects(change(backend, 'unknown'), { code: 'room_not_found' });
  await t.rejects(patchRoom(ctx, backend, 'room', {}), { message: 'metadata is required' });
  await t.rejects(patchRoom(ctx, backend, 'room', { metadata: { a: null } }), {
    message: 'metadata.a must be a string, a number or a boolean',
  });
  await t.rejects(patchRoom(ctx, backend, 'room', { metadata: { a: 'x'.repeat(4001) } }), {
    message: 'metadata.a must be at most 4000 characters',
  });
  t.equal(await deleteRoom(ctx, { ...backend, scope: 'moderate' }, 'room'), '{"deleted":true}');
});
