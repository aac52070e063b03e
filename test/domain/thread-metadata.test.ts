import t from 'tap';
import { editComment, listComments } from '../../src/domain/comments/comments.ts';
import { getThread, listThreads, patchThread } from '../../src/domain/comments/threads.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { addComment, createWorld, itemsOf, query, startThread } from './world.ts';

await t.test('PATCH replaces the metadata of a thread and emits an event; its response has no metadata', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer, backend } = world;
  const { threadId } = await startThread(world, 'room', { metadata: { old: 1 } });
  world.clock.advance(1000);
  t.equal(
    await patchThread(ctx, backend, threadId, { metadata: { ticket: 'A-1', urgent: true } }),
    `{"threadId":"${threadId}","resolved":false}`,
  );
  const { thread } = JSON.parse(await getThread(peer, backend, threadId)) as { thread: Thread };
  t.match(thread, {
    metadata: { ticket: 'A-1', urgent: true },
    updatedAt: '2026-01-02T03:04:06.678Z',
    resolved: false,
  });
  t.notOk('old' in thread.metadata);
  const last = (await world.events()).at(-1);
  t.match(last, { type: 'thread.updated', threadId, roomId: 'room', actor: { userId: null } });
  t.strictSame(last?.data, thread);
  await patchThread(ctx, backend, threadId, { metadata: { urgent: true, ticket: 'A-1' } });
  t.equal((await world.events()).length, 2, 'the same again tells nobody');
});

await t.test('both at once are one commit with two events', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  t.equal(
    await patchThread(world.ctx, world.backend, threadId, { resolved: true, metadata: { a: 1 } }),
    `{"threadId":"${threadId}","resolved":true}`,
  );
  const [updated, resolved] = (await world.events()).slice(1);
  t.match(updated, { type: 'thread.updated', data: { resolved: true, metadata: { a: 1 } } });
  t.match(resolved, { type: 'thread.resolved', data: { resolved: true, metadata: { a: 1 } } });
  t.equal(
    await patchThread(world.ctx, world.backend, threadId, { metadata: { a: 2 } }),
    `{"threadId":"${threadId}","resolved":true}`,
  );
});

await t.test('every member can pin a thread elsewhere, which replaces its position and emits an event', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer } = world;
  const { threadId } = await startThread(world, 'room', { position: { x: 0, y: 0, selector: '#old' } });
  const position = {
    x: 0.5,
    y: 1,
    selector: '#new',
    quote: 'Revenue by week',
    quotePrefix: 'Before it',
    quoteSuffix: 'Behind it',
    elementOffsetX: 0.25,
  };
  t.equal(await patchThread(ctx, world.bob, threadId, { position }), `{"threadId":"${threadId}","resolved":false}`);
  const { thread } = JSON.parse(await getThread(peer, world.backend, threadId)) as { thread: Thread };
  t.match(thread, { positionX: 0.5, positionY: 1, position, userId: 'ann' });
  t.strictSame((await world.events()).at(-1)?.data, thread);
  await patchThread(ctx, world.bob, threadId, { position });
  t.equal((await world.events()).length, 2, 'the same again tells nobody');
  await t.rejects(patchThread(ctx, world.bob, threadId, { position: { x: 2, y: 0 } }), {
    code: 'invalid_request',
    message: /^position\.x must/,
  });
  for (const field of ['quote', 'quotePrefix', 'quoteSuffix']) {
    await t.rejects(patchThread(ctx, world.bob, threadId, { position: { x: 0, y: 0, [field]: 'q'.repeat(2_049) } }), {
      message: `position.${field} must be at most 2048 characters`,
    });
  }
});

await t.test('an empty or forbidden change is refused', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const patch = (input: unknown, actor = world.backend as Parameters<typeof patchThread>[1]) =>
    patchThread(world.ctx, actor, threadId, input);
  await t.rejects(patch({}), {
    code: 'invalid_request',
    message: 'resolved is required, unless metadata or position is given (null counts as absent)',
  });
  await t.rejects(patch({ resolved: null }), {
    message: 'resolved is required, unless metadata or position is given (null counts as absent)',
  });
  await t.rejects(patch({ metadata: 5 }), { message: 'metadata must be an object' });
  await t.rejects(patch({ metadata: { ['k'.repeat(41)]: 1 } }), {
    message: 'Keys of metadata must be 1 to 40 characters',
  });
  await t.rejects(patch({ metadata: { a: 1 } }, world.bob), { code: 'forbidden' }, 'another’s thread');
  await t.resolves(patch({ metadata: { a: 1 } }, world.ann));
  await t.resolves(patch({ metadata: { a: 2 } }, { ...world.bob, role: 'moderator' }));
  await t.rejects(patchThread(world.ctx, world.backend, 'th_unknown', { metadata: {} }), { code: 'thread_not_found' });
});

await t.test('threads and comments can be filtered by their metadata', async (t) => {
  const world = await createWorld(t);
  const { ctx, backend } = world;
  const { threadId } = await startThread(world, 'room', { metadata: { ticket: 'A-1' } });
  await startThread(world);
  const threads = async (search: string) =>
    itemsOf<Thread>(await listThreads(ctx, backend, 'room', query('threads', search))).map(({ id }) => id);
  t.strictSame(await threads('metadata.ticket=A-1'), [threadId]);
  await patchThread(ctx, backend, threadId, { metadata: {} });
  t.strictSame(await threads('metadata.ticket=A-1'), []);

  const { id } = await addComment(world, threadId, { metadata: { build: 7 } });
  const comments = async (search: string) =>
    itemsOf<Comment>(await listComments(ctx, backend, threadId, query('comments', search))).map(
      (comment) => comment.id,
    );
  t.strictSame(await comments('metadata.build=7'), [id]);
  await editComment(ctx, backend, id, { body: 'x', metadata: { build: 8 } });
  t.strictSame(await comments('metadata.build=7'), []);
  t.strictSame(await comments('metadata.build=8&userId=ann'), [id]);
});
