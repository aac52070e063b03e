import t, { type Test } from 'tap';
import type { CollabRoom } from '../../src/client/room/room.ts';
import type { CollabSession } from '../../src/client/session/session.ts';
import type { Tenant } from '../helpers/service.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';

// Writes on what the server has not confirmed: the snapshot has ids for it that the server does not know.

/** A loaded room of a session that has lost its connection, and how to give it a new one. */
async function offlineRoom(
  t: Test,
): Promise<{ tenant: Tenant; session: CollabSession; room: CollabRoom; connect: () => void }> {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets = new CuttableSockets();
  // The next attempt is made when the test says so.
  const session = openSession(t, tenant, 'ann', {
    WebSocket: sockets.WebSocket,
    backoff: { firstMs: 1e9, maxMs: 1e9 },
  });
  const room = session.room('page');
  t.teardown(room.subscribe(() => {}));
  await room.ready();
  sockets.cut();
  await stateOf(session, ({ status }) => status === 'reconnecting');
  return { tenant, session, room, connect: () => session.reconnect() };
}

const firstOf = (room: CollabRoom): string => room.getSnapshot().threads[0]?.comments[0]?.id ?? '';
const settled = (room: CollabRoom): Promise<unknown> =>
  snapshotOf(room, ({ threads }) =>
    threads.every((thread) => thread.pending === null && thread.comments.every(({ pending }) => pending === null)),
  );

t.test('the first comment of a thread that waits can be changed, and be reacted to', async (t) => {
  const { tenant, room, connect } = await offlineRoom(t);
  const created = room.createThread({ body: 'first' });
  const bodies = new Set<string | undefined>();
  room.subscribe(() => bodies.add(room.getSnapshot().threads[0]?.comments[0]?.body));
  const edited = room.updateComment(firstOf(room), { body: 'better' });
  const reaction = room.addReaction(firstOf(room), '👍');
  t.match(room.getSnapshot().threads, [
    { pending: 'create', comments: [{ body: 'better', reactions: [{ emoji: '👍' }] }] },
  ]);
  connect();
  const thread = await created;
  t.match(await edited, { threadId: thread.id, body: 'better' });
  t.equal((await reaction).commentId, (await edited).id);
  await settled(room);
  t.match(await tenant.request('GET', `/threads/${thread.id}`), {
    json: { comments: [{ body: 'better', reactions: [{ emoji: '👍', userId: 'ann' }] }] },
  });
  t.match(room.getSnapshot().threads, [
    { comments: [{ id: (await edited).id, body: 'better', reactions: [{ emoji: '👍' }] }] },
  ]);
  t.strictSame([...bodies], ['better'], 'the earlier text never came back');
});

t.test('comments on a thread that waits, their changes, and its state', async (t) => {
  const { tenant, room, connect } = await offlineRoom(t);
  const created = room.createThread({ body: 'first' });
  const threadId = room.getSnapshot().threads[0]?.id ?? '';
  const reply = room.createComment(threadId, { body: 'reply' });
  const replyId = room.getSnapshot().threads[0]?.comments[1]?.id ?? '';
  const writes = [
    room.updateComment(replyId, { body: 'changed' }),
    room.updateComment(replyId, { body: 'changed again' }),
    room.addReaction(replyId, '🎉'),
    room.createComment(threadId, { body: 'unwanted' }),
    room.setResolved(threadId, true),
    room.moveThread(threadId, { x: 0.5, y: 0.25 }),
  ];
  const unwanted = room.deleteComment(room.getSnapshot().threads[0]?.comments[2]?.id ?? '');
  connect();
  t.equal((await created).id, threadId);
  t.equal((await reply).id, replyId);
  await Promise.all([...writes, unwanted]);
  await settled(room);
  t.match(await tenant.request('GET', `/threads/${threadId}`), {
    json: { thread: { resolved: true, positionX: 0.5, commentCount: 2 }, comments: [{ threadId }, { threadId }] },
  });
  // In the order of their ids, because the clock stands still.
  const bodies = room
    .getSnapshot()
    .threads.flatMap(({ comments }) => comments.map(({ body, reactions }) => `${body} ${reactions.length}`));
  t.strictSame(bodies.toSorted(), ['changed again 1', 'first 0']);
});

t.test('a thread goes with its only comment, although both wait', async (t) => {
  const { tenant, room, connect } = await offlineRoom(t);
  const created = room.createThread({ body: 'first' });
  const deleted = room.deleteComment(firstOf(room));
  t.strictSame(room.getSnapshot().threads, []);
  connect();
  await Promise.all([created, deleted]);
  t.match(await tenant.request('GET', '/rooms/page/threads'), { json: { items: [] } });
  t.strictSame((await snapshotOf(room, ({ status }) => status === 'ready')).threads, []);
});

t.test('reactions that wait can be taken back, and be made again', async (t) => {
  const { tenant, room, connect } = await offlineRoom(t);
  const created = room.createThread({ body: 'first' });
  const reactionOf = (emoji: string): string =>
    room.getSnapshot().threads[0]?.comments[0]?.reactions.find((reaction) => reaction.emoji === emoji)?.id ?? '';
  const writes: Promise<unknown>[] = [];
  for (const emoji of ['👍', '🎉']) {
    writes.push(room.addReaction(firstOf(room), emoji), room.removeReaction(reactionOf(emoji)));
    t.equal(reactionOf(emoji), '');
  }
  writes.push(room.addReaction(firstOf(room), '👍'));
  const shown = new Set<number>();
  room.subscribe(() =>
    shown.add(room.getSnapshot().threads[0]?.comments[0]?.reactions.filter(({ emoji }) => emoji === '🎉').length ?? 0),
  );
  connect();
  await Promise.all([...writes, created]);
  t.match(await tenant.request('GET', `/threads/${(await created).id}`), {
    json: { comments: [{ reactions: [{ emoji: '👍' }] }] },
  });
  await snapshotOf(
    room,
    ({ threads }) =>
      threads[0]?.pending === null && threads[0].comments[0]?.reactions[0]?.id.startsWith('pending') === false,
  );
  t.match(room.getSnapshot().threads, [{ comments: [{ reactions: [{ emoji: '👍' }] }] }]);
  t.equal(room.getSnapshot().threads[0]?.comments[0]?.reactions.length, 1);
  t.strictSame([...shown], [0], 'the other one never came back');
});

t.test('what depends on a refused write is refused for the same reason', async (t) => {
  const { room, connect } = await offlineRoom(t);
  const created = room.createThread({ body: '   ' });
  const threadId = room.getSnapshot().threads[0]?.id ?? '';
  const reply = room.createComment(threadId, { body: 'reply' });
  const writes = [
    created,
    reply,
    room.setResolved(threadId, true),
    room.updateComment(firstOf(room), { body: 'better' }),
    room.addReaction(room.getSnapshot().threads[0]?.comments[1]?.id ?? '', '👍'),
  ];
  const outcomes = Promise.allSettled(writes);
  connect();
  for (const outcome of await outcomes)
    t.match(outcome, {
      status: 'rejected',
      reason: { name: 'CollabError', code: 'invalid_request', message: /^body must/ },
    });
  t.strictSame(room.getSnapshot().threads, []);
});

t.test('the id that the first comment had at first is understood later', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const room = openSession(t, tenant, 'ann').room('page');
  t.teardown(room.subscribe(() => {}));
  await room.ready();
  const created = room.createThread({ body: 'first' });
  const id = firstOf(room);
  await created;
  await settled(room);
  t.not(firstOf(room), id);
  const edited = room.updateComment(id, { body: 'better' });
  t.match(room.getSnapshot().threads, [{ comments: [{ body: 'better', pending: 'update' }] }]);
  t.equal((await edited).id, firstOf(room));
});

t.test('a room without subscribers', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  // Nothing else makes a lazy session connect.
  const room = openSession(t, tenant, 'ann', { lazy: true }).room('page');
  const thread = await room.createThread({ body: 'first' });
  t.match(thread, { userId: 'ann', commentCount: 1 });
  const comment = await room.createComment(thread.id, { body: 'reply' });
  t.match(await room.updateComment(comment.id, { body: 'changed' }), { id: comment.id, body: 'changed' });
  const { id } = await room.addReaction(comment.id, '👍');
  await room.removeReaction(id);
  await room.setResolved(thread.id, true);
  await t.rejects(room.deleteComment('cm_unknown_0000'), { code: 'comment_not_found' });
  t.strictSame(room.getSnapshot().threads, [], 'nothing stays pending');

  const during = room.createComment(thread.id, { body: 'last' });
  t.teardown(room.subscribe(() => {}));
  await during;
  await snapshotOf(room, ({ status, threads }) => status === 'ready' && threads[0]?.comments.length === 3);
  await settled(room);
  t.match(room.getSnapshot().threads, [{ id: thread.id, resolved: true, commentCount: 3 }]);
  t.equal(room.getSnapshot().threads.length, 1);
  t.strictSame(
    room
      .getSnapshot()
      .threads[0]?.comments.map(({ body, reactions }) => `${body} ${reactions.length}`)
      .toSorted(),
    ['changed 0', 'first 0', 'last 0'],
  );
});

t.test('a write whose answer was lost resolves with the record of the server, without subscribers too', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, 'ann', { WebSocket: sockets.WebSocket });
  const room = session.room('page');
  await stateOf(session, ({ status }) => status === 'live');
  // The event shows that the server has the thread; its answer may not have arrived by then.
  const stop = session.on('event', () => {
    stop();
    sockets.cut();
  });
  const thread = await room.createThread({ body: 'first' });
  t.match(await tenant.request('GET', `/threads/${thread.id}`), {
    json: { thread: { createdAt: thread.createdAt, userId: 'ann' } },
  });
  t.notMatch(thread, { pending: 'create' });
  t.strictSame(room.getSnapshot().threads, []);
});
