import t from 'tap';
import {
  createComment,
  deleteComment,
  editComment,
  listComments,
  removeComment,
} from '../../src/domain/comments/comments.ts';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { parseIdempotencyKey, sweepIdempotency } from '../../src/domain/idempotency.ts';
import { deleteThread, getThread, setResolved } from '../../src/domain/comments/threads.ts';
import { getRoom } from '../../src/domain/rooms/rooms.ts';
import type { Context } from '../../src/domain/context.ts';
import { readCurrent } from '../../src/domain/notifications/create-notifications.ts';
import type { CollabError } from '../../src/model/errors.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { addComment, createWorld, itemsOf, query, START, startThread } from './world.ts';
import { streamOf } from '../../src/domain/events/streams.ts';

await t.test('a created comment has every field, in order, and its event carries it', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  world.clock.advance(1000);
  const input = { userId: 'bob', body: 'hé 😀', mentions: ['ann', 'cy', 'ann'], metadata: { build: 7 }, surprise: 1 };
  const outcome = await createComment(world.ctx, world.backend, threadId, input, null);
  const { comment } = JSON.parse(outcome.body) as { comment: Comment };
  t.equal(outcome.status, 201);
  t.match(comment.id, /^cm_[0-9a-z]{20}_[0-9a-z]{16}$/);
  const { id } = comment;
  const at = '2026-01-02T03:04:06.678Z';
  t.equal(
    outcome.body,
    `{"comment":{"id":"${id}","threadId":"${threadId}","userId":"bob","body":"hé 😀","mentions":["ann","cy"],"attachments":[],"reactions":[],"metadata":{"build":7},"createdAt":"${at}","editedAt":null}}`,
  );
  const event = (await world.events()).at(-1);
  t.match(event, {
    type: 'comment.created',
    seq: 4,
    at,
    roomId: 'room',
    threadId,
    actor: { userId: 'bob', via: 'rest' },
  });
  t.same(event?.data, comment);
  const { thread } = JSON.parse(await getThread(world.peer, world.backend, threadId)) as { thread: Thread };
  t.match(thread, { commentCount: 2, updatedAt: at });
  const { room } = JSON.parse((await getRoom(world.peer, world.backend, 'room', { includeComments: false })).text) as {
    room: object;
  };
  t.match(room, { lastActivityAt: at, threadCount: 1, openThreadCount: 1 });
});

await t.test('nothing is stored of an invalid comment', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const create = (thread: string, fields: object) =>
    createComment(world.ctx, world.backend, thread, { userId: 'ann', body: 'x', ...fields }, null);
  await t.rejects(create('th_unknown', {}), { code: 'thread_not_found', message: 'Thread not found' });
  await t.rejects(create('../x y', {}), { code: 'thread_not_found' });
  await t.rejects(create(threadId, { userId: 'zoë' }), {
    code: 'unknown_user',
    message: 'Unknown user: zoë. The user must have connected before, or be created with PUT /users/zo%C3%AB',
  });
  await t.rejects(create(threadId, { body: ' ' }), { code: 'invalid_request' });
  await t.rejects(create(threadId, { body: 'x'.repeat(10_001) }), { message: 'body must be 1 to 10000 characters' });
  t.equal((await world.events()).length, 1);
  await t.resolves(create(threadId, { body: 'x'.repeat(10_000) }));
});

await t.test('the author of what a user writes is the user, whatever the input says', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  for (const userId of ['bob', 7, undefined]) {
    const outcome = await createComment(world.ctx, world.ann, threadId, { userId, body: 'x' }, null);
    t.match(JSON.parse(outcome.body), { comment: { userId: 'ann' } });
  }
  await createComment(world.ctx, { ...world.ann, userId: 'new' }, threadId, { body: 'x' }, null);
  t.equal(
    (await world.ctx.store.events(streamOf(world.environment), 0, 100)).filter(({ text }) =>
      text.includes('"user.updated"'),
    ).length,
    3,
    'a person with a token is known',
  );
});

await t.test('without requireKnownUsers, a write creates the user', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const environment = await updateEnvironment(world.ctx, world.environment.id, {
    settings: { requireKnownUsers: false, limits: { commentsPerThread: 3 } },
  });
  const actor = { ...world.backend, environment };
  await createComment(world.ctx, actor, threadId, { userId: 'cy', body: 'x' }, null);
  await createComment(world.ctx, actor, threadId, { userId: 'cy', body: 'x' }, null);
  await t.rejects(createComment(world.ctx, actor, threadId, { userId: 'cy', body: 'x' }, null), {
    message: 'A thread holds at most 3 comments',
  });
});

await t.test('an id chosen by the client is used, and only once', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  t.equal((await addComment(world, threadId, { id: 'my-comment_1' })).id, 'my-comment_1');
  await t.rejects(addComment(world, threadId, { id: 'my-comment_1' }), { code: 'id_taken' });
  const racing = await Promise.allSettled(
    Array.from({ length: 5 }, () => addComment(world, threadId, { id: 'racing-id' })),
  );
  t.equal(racing.filter(({ status }) => status === 'fulfilled').length, 1);
});

await t.test('an edit sets editedAt and keeps mentions that are absent', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const comment = await addComment(world, threadId, { mentions: ['bob'], metadata: { a: 1 } });
  world.clock.advance(5);
  const edited = JSON.parse(await editComment(world.ctx, world.backend, comment.id, { body: 'new' })) as {
    comment: Comment;
  };
  t.same(edited.comment, { ...comment, body: 'new', editedAt: new Date(START + 5).toISOString() });
  t.match((await world.events()).at(-1), {
    type: 'comment.updated',
    threadId,
    actor: { userId: null, via: 'rest' },
    data: edited.comment,
  });
  const again = JSON.parse(await editComment(world.ctx, world.ann, comment.id, { body: 'new', mentions: [] })) as {
    comment: Comment;
  };
  t.same(again.comment.mentions, []);
  await t.rejects(editComment(world.ctx, world.bob, comment.id, { body: 'x' }), { code: 'forbidden' });
  await t.resolves(editComment(world.ctx, { ...world.bob, role: 'moderator' }, comment.id, { body: 'x' }));
  await t.rejects(editComment(world.ctx, world.backend, comment.id, {}), { message: 'body is required' });
  await t.rejects(editComment(world.ctx, world.backend, 'cm_unknown', { body: 'x' }), {
    code: 'comment_not_found',
    message: 'Comment not found',
  });
});

await t.test('a change of the metadata alone needs no text and is no edit', async (t) => {
  const world = await createWorld(t);
  const { ctx, backend } = world;
  const { threadId } = await startThread(world);
  const comment = await addComment(world, threadId, { mentions: ['bob'], metadata: { a: 1 } });
  world.clock.advance(5);
  const patch = async (input: unknown): Promise<Comment> =>
    (JSON.parse(await editComment(ctx, backend, comment.id, input)) as { comment: Comment }).comment;
  t.strictSame(await patch({ metadata: { b: 2 } }), { ...comment, metadata: { b: 2 } });
  t.match((await world.events()).at(-1), { type: 'comment.updated', data: { metadata: { b: 2 }, editedAt: null } });
  const edited = await patch({ body: 'new' });
  world.clock.advance(5);
  t.strictSame(
    await patch({ metadata: {} }),
    { ...edited, metadata: {} },
    'nor does it move the time of an earlier edit',
  );
  for (const fields of [
    { mentions: [] },
    { metadata: {}, mentions: [] },
    { metadata: {}, attachmentIds: [] },
    { metadata: null },
  ])
    await t.rejects(patch(fields), { code: 'invalid_request', message: 'body is required' });
});

await t.test('deleting the last comment deletes the thread, with events for both', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const second = await addComment(world, threadId);
  t.equal(await deleteComment(world.ctx, world.backend, commentId), '{"deleted":true}');
  t.match((await world.events()).at(-1), {
    type: 'comment.deleted',
    data: { commentId, threadId, threadDeleted: false },
  });
  await t.rejects(deleteComment(world.ctx, world.backend, commentId), { code: 'comment_not_found' });
  await t.rejects(deleteComment(world.ctx, world.bob, second.id), { code: 'forbidden' });
  await deleteComment(world.ctx, world.ann, second.id);
  const [first, last] = (await world.events()).slice(-2);
  t.match(first, {
    type: 'comment.deleted',
    data: { commentId: second.id, threadId, threadDeleted: true },
    actor: { userId: 'ann', via: 'ws' },
  });
  t.match(last, { type: 'thread.deleted', data: { threadId } });
  await t.rejects(getThread(world.ctx, world.backend, threadId), { code: 'thread_not_found' });
  t.match(JSON.parse((await getRoom(world.ctx, world.backend, 'room', { includeComments: false })).text), {
    room: { threadCount: 0, openThreadCount: 0 },
    threads: [],
  });
});

await t.test('of many concurrent deletions on two workers, exactly one deletes the thread', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const ids = [commentId];
  for (let i = 0; i < 15; i++) ids.push((await addComment(world, threadId)).id);
  await Promise.all(ids.map((id, i) => deleteComment(i % 2 === 0 ? world.ctx : world.peer, world.backend, id)));
  const events = (await world.events()).slice(ids.length);
  t.equal(events.filter(({ type }) => type === 'comment.deleted').length, ids.length);
  t.equal(events.filter(({ data }) => (data as { threadDeleted?: boolean }).threadDeleted === true).length, 1);
  t.equal(events.at(-1)?.type, 'thread.deleted');
  t.same(await world.ctx.store.range(`e/${world.environment.id}/t/${threadId}`), []);
  t.same(await world.ctx.store.range(`e/${world.environment.id}/c`), []);
});

await t.test('of two processes that delete the last two comments at once, one deletes the thread', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const { id: secondId } = await addComment(world, threadId);
  // Without the locks, which only one process shares: both have read before either commits.
  const bothHaveRead = barrier(2);
  const remove = (ctx: Context, id: string): Promise<string> =>
    ctx.store.transact(async (tx) => {
      const answer = await removeComment(ctx, tx, world.backend, id);
      await bothHaveRead();
      return answer;
    });
  await Promise.all([remove(world.ctx, commentId), remove(world.peer, secondId)]);
  await t.rejects(getThread(world.ctx, world.backend, threadId), { code: 'thread_not_found' });
  t.same(
    (await world.events())
      .filter(({ type }) => type === 'comment.deleted')
      .map(({ data }) => (data as { threadDeleted: boolean }).threadDeleted),
    [false, true],
  );
});

await t.test('a comment that is deleted before its notifications are stored has none', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const comment = await addComment(world, threadId);
  const found: boolean[] = [];
  await world.peer.store.transact(async (tx) => {
    const current = await readCurrent(tx, world.environment.id, comment);
    found.push(current !== undefined);
    if (found.length === 1) await deleteComment(world.ctx, world.backend, comment.id);
    tx.put('notified', 'of-the-comment', '1');
  });
  t.same(found, [true, false], 'the transaction ran again');
});

await t.test('concurrent creations, edits, resolves and deletions leave correct counts', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const victims = await Promise.all(Array.from({ length: 6 }, () => addComment(world, threadId)));
  const results = await Promise.allSettled([
    ...Array.from({ length: 20 }, (_, i) =>
      createComment(i % 2 === 0 ? world.ctx : world.peer, world.backend, threadId, { userId: 'bob', body: 'x' }, null),
    ),
    ...victims.slice(0, 3).map(({ id }) => deleteComment(world.peer, world.backend, id)),
    ...victims.slice(3).map(({ id }) => editComment(world.ctx, world.backend, id, { body: 'y' })),
    setResolved(world.ctx, world.backend, threadId, true),
  ]);
  t.same(
    results.filter(({ status }) => status === 'rejected'),
    [],
  );
  const { thread, comments } = JSON.parse(await getThread(world.ctx, world.backend, threadId)) as {
    thread: Thread;
    comments: Comment[];
  };
  t.equal(comments.length, 1 + 6 + 20 - 3);
  t.equal(thread.commentCount, comments.length);
  t.match(JSON.parse((await getRoom(world.peer, world.backend, 'room', { includeComments: false })).text), {
    room: { threadCount: 1, openThreadCount: 0 },
  });
});

await t.test('a thread that is deleted while comments are written has no comments left', async (t) => {
  for (let round = 0; round < 5; round++) {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    const writes = Array.from({ length: 6 }, () =>
      addComment(world, threadId).then(
        () => 'written',
        (thrown: CollabError) => thrown.code,
      ),
    );
    await deleteThread(world.peer, world.backend, threadId);
    const outcomes = await Promise.all(writes);
    t.ok(outcomes.every((outcome) => outcome === 'written' || outcome === 'thread_not_found'));
    t.same(await world.ctx.store.range(`e/${world.environment.id}/t/${threadId}`), []);
    t.same(await world.ctx.store.range(`e/${world.environment.id}/c`), []);
    t.equal((await world.events()).at(-1)?.type, 'thread.deleted');
  }
});

await t.test('comments are listed oldest first, in pages and filtered', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const ids = [commentId];
  for (let i = 0; i < 6; i++) {
    if (i % 2 === 0) world.clock.advance(1);
    ids.push(
      (
        await addComment(world, threadId, {
          userId: i % 3 === 0 ? 'bob' : 'ann',
          body: `${i}`,
          mentions: i === 5 ? ['bob'] : [],
        })
      ).id,
    );
  }
  const list = async (search: string) => listComments(world.ctx, world.backend, threadId, query('comments', search));
  const idsOf = async (search: string) => itemsOf<Comment>(await list(search)).map(({ id }) => id);
  t.same(await idsOf(''), ids);
  t.same(await idsOf('order=desc'), ids.toReversed());
  t.same(await idsOf('userId=bob'), [ids[1], ids[4]]);
  t.same(await idsOf('mentions=bob'), [ids[6]]);
  t.same(await idsOf(`createdSince=${new Date(START + 2).toISOString()}`), ids.slice(3));
  for (const search of [
    '',
    'order=desc',
    'sort=updatedAt',
    'sort=updatedAt&order=desc',
    'userId=ann',
    'userId=ann&sort=updatedAt',
  ]) {
    for (const limit of [1, 2, 3]) {
      const collected: string[] = [];
      for (let cursor = ''; ;) {
        const page = await list(`${search}&limit=${limit}${cursor}`);
        const items = itemsOf<Comment>(page);
        t.ok(items.length <= limit);
        collected.push(...items.map(({ id }) => id));
        t.equal(Buffer.from(page.text).toString().includes('"nextCursor"'), page.nextCursor !== null);
        if (page.nextCursor === null) break;
        cursor = `&cursor=${page.nextCursor}`;
      }
      t.same(collected, await idsOf(search), `${search} by ${limit}`);
    }
  }
  world.clock.advance(1000);
  await editComment(world.ctx, world.backend, ids[0] as string, { body: 'late' });
  t.same(await idsOf(`updatedSince=${new Date(START + 1000).toISOString()}`), [ids[0]]);
  t.equal((await idsOf('sort=updatedAt')).at(-1), ids[0]);
  t.same(await idsOf(''), ids, 'an edit does not move a comment');
  await t.rejects(listComments(world.ctx, world.backend, 'th_unknown', query('comments')), {
    code: 'thread_not_found',
  });
});

await t.test('a cursor is valid only for its list, filters and order', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  await addComment(world, threadId);
  const other = await startThread(world, 'elsewhere');
  const list = (thread: string, search: string) =>
    listComments(world.ctx, world.backend, thread, query('comments', search));
  const { nextCursor } = await list(threadId, 'limit=1');
  await t.resolves(list(threadId, `cursor=${nextCursor}`));
  for (const search of ['order=desc', 'sort=updatedAt', 'userId=ann']) {
    await t.rejects(list(threadId, `${search}&cursor=${nextCursor}`), {
      code: 'invalid_cursor',
      message: 'Invalid cursor',
    });
  }
  await t.rejects(list(other.threadId, `cursor=${nextCursor}`), { code: 'invalid_cursor' });
  const forged = (cursor: object) => Buffer.from(JSON.stringify(cursor)).toString('base64url');
  for (const cursor of [
    '',
    'x',
    '%00',
    forged({ v: 1 }),
    forged({ v: 1, k: '~', id: 'x', f: '' }),
    Buffer.from('null').toString('base64url'),
    'a'.repeat(9000),
  ]) {
    await t.rejects(list(threadId, `cursor=${cursor}`), { code: 'invalid_cursor' }, cursor.slice(0, 20));
  }
});

await t.test('a list without a limit continues with a cursor after the cap of the environment', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  for (let i = 0; i < 4; i++) await addComment(world, threadId);
  const environment = await updateEnvironment(world.ctx, world.environment.id, {
    settings: { limits: { listHardCap: 3 } },
  });
  const actor = { ...world.backend, environment };
  const page = await listComments(world.ctx, actor, threadId, query('comments'));
  t.equal(itemsOf(page).length, 3);
  const rest = await listComments(world.ctx, actor, threadId, query('comments', `cursor=${page.nextCursor}`));
  t.equal(itemsOf(rest).length, 2);
  t.equal(rest.nextCursor, null);
});

await t.test(
  'a request with an Idempotency-Key is done once, also when repeated concurrently on two workers',
  async (t) => {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    const request = { key: 'k1', method: 'POST', path: `/api/v1/threads/${threadId}/comments`, bodyHash: 'abc' };
    const post = (worker: typeof world.ctx, over: Partial<typeof request> = {}) =>
      createComment(worker, world.backend, threadId, { userId: 'ann', body: 'x' }, { ...request, ...over });
    const outcomes = await Promise.all(Array.from({ length: 8 }, (_, i) => post(i % 2 === 0 ? world.ctx : world.peer)));
    t.equal(new Set(outcomes.map(({ body }) => body)).size, 1);
    t.equal(outcomes.filter(({ replayed }) => !replayed).length, 1);
    t.ok(outcomes.every(({ status }) => status === 201));
    await t.rejects(post(world.ctx, { bodyHash: 'other' }), { code: 'idempotency_key_reused' });
    t.notOk((await post(world.ctx, { path: '/elsewhere' })).replayed, 'another path is another request');
    t.equal(await sweepIdempotency(world.ctx, world.environment), 0);
    world.clock.advance(24 * 3_600_000 - 1);
    t.ok((await post(world.ctx)).replayed);
    world.clock.advance(1);
    t.notOk((await post(world.ctx)).replayed, 'a day later it is a new request');
    t.equal(await sweepIdempotency(world.ctx, world.environment), 1, 'the other path');
    await t.rejects(createComment(world.ctx, world.backend, threadId, {}, { ...request, key: 'k2' }), {
      code: 'invalid_request',
    });
    t.notOk((await post(world.ctx, { key: 'k2' })).replayed, 'a refused request leaves its key free');
  },
);

await t.test('the Idempotency-Key header may be bare or quoted', async (t) => {
  t.equal(parseIdempotencyKey('abc'), 'abc');
  t.equal(parseIdempotencyKey('"abc"'), 'abc');
  t.equal(parseIdempotencyKey('x'.repeat(255)), 'x'.repeat(255));
  for (const header of ['', '""', 'a b', 'x'.repeat(256), 'ü'])
    t.throws(() => parseIdempotencyKey(header), {
      code: 'invalid_request',
      message: /^Idempotency-Key must be 1 to 255/,
    });
});

await t.test('a credential confined to rooms has no access to comments of other rooms', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world, 'secret');
  for (const actor of [
    { ...world.backend, rooms: ['open/*'] },
    { ...world.ann, rooms: ['open/*'] },
  ]) {
    const refused = { code: 'forbidden' };
    await t.rejects(listComments(world.ctx, actor, threadId, query('comments')), refused);
    await t.rejects(createComment(world.ctx, actor, threadId, {}, null), refused, 'before the body is looked at');
    await t.rejects(editComment(world.ctx, actor, commentId, {}), refused);
    await t.rejects(deleteComment(world.ctx, actor, commentId), refused);
    await t.rejects(getThread(world.ctx, actor, threadId), refused);
    await t.rejects(setResolved(world.ctx, actor, threadId, true), refused);
    await t.rejects(deleteThread(world.ctx, actor, threadId), refused);
  }
});

/** Resolves for the first so many callers once all of them have called; at once for later ones. */
function barrier(callers: number): () => Promise<void> {
  let missing = callers;
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return () => {
    missing -= 1;
    if (missing === 0) open();
    return opened;
  };
}
