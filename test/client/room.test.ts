import t from 'tap';
import type { CollabError } from '../../src/client/errors.ts';
import type { RoomSnapshot } from '../../src/client/room/snapshot.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';

t.test('a room shows what it has, and every change after that', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  await tenant.request('PUT', '/users/bot', { body: { name: 'CI', kind: 'bot' } });
  await tenant.request('POST', '/rooms/page/threads', { body: { userId: 'bot', body: 'first' } });
  const room = openSession(t, tenant, 'ann').room('page');
  const before = await room.ready();
  t.match(before, { status: 'ready', threads: [{ pending: null, comments: [{ body: 'first', pending: null }] }] });

  const thread = before.threads[0];
  await tenant.request('POST', `/threads/${thread?.id}/comments`, { body: { userId: 'bot', body: 'second' } });
  const after = await snapshotOf(room, ({ threads }) => threads[0]?.commentCount === 2);
  t.equal(after.threads[0]?.comments[0], thread?.comments[0], 'what did not change is the same object');
  await tenant.request('DELETE', `/threads/${thread?.id}`);
  t.match(await snapshotOf(room, ({ threads }) => threads.length === 0), { status: 'ready' });
});

t.test('a write shows at once, and is confirmed; a refused one disappears with its reason', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'ann');
  const room = session.room('page');
  await room.ready();
  t.teardown(room.subscribe(() => {}));

  const created = room.createThread({ body: 'hello', position: { x: 0.5, y: 0.25 } });
  t.match(room.getSnapshot().threads, [
    { pending: 'create', userId: 'ann', positionX: 0.5, comments: [{ body: 'hello', pending: 'create' }] },
  ]);
  const { id } = await created;
  const [thread] = (await snapshotOf(room, ({ threads }) => threads[0]?.pending === null)).threads;
  t.equal(thread?.id, id, 'it keeps the id that it had at first');

  const refused = room.createComment(id, { body: '   ' });
  t.equal(room.getSnapshot().threads[0]?.comments.length, 2);
  await t.rejects(refused, { code: 'invalid_request', message: /^body must/ });
  t.equal(room.getSnapshot().threads[0]?.comments.length, 1, 'back as it was');

  const comment = await room.createComment(id, { body: 'reply', mentions: ['bob'] });
  const edit = room.updateComment(comment.id, { body: 'better' });
  t.match(room.getSnapshot().threads[0]?.comments[1], { body: 'better', pending: 'update' });
  t.match(await edit, { body: 'better', mentions: ['bob'] });
  const reaction = await room.addReaction(comment.id, '👍');
  await snapshotOf(room, ({ threads }) => threads[0]?.comments[1]?.reactions[0]?.id === reaction.id);
  const removed = room.removeReaction(reaction.id);
  t.strictSame(room.getSnapshot().threads[0]?.comments[1]?.reactions, []);
  await removed;
  const resolved = room.setResolved(id, true);
  t.match(room.getSnapshot().threads[0], { resolved: true, pending: 'update' });
  await resolved;
  t.match(await snapshotOf(room, ({ threads }) => threads[0]?.pending === null), {
    threads: [{ resolved: true, resolvedBy: 'ann' }],
  });
  await room.deleteComment(comment.id);
  const last = room.deleteComment(room.getSnapshot().threads[0]?.comments[0]?.id ?? '');
  t.strictSame(room.getSnapshot().threads, [], 'the thread goes with its last comment, at once');
  await last;
});

t.test('what moderators hold stays in the snapshot of its author, after a reload too, until they decide', async (t) => {
  const tenant = await (await startService(t, { filters: holdingFilters })).tenant('acme');
  const [session, other] = [
    openSession(t, tenant, 'ann'),
    openSession(t, tenant, 'mod', { token: () => tenant.token({ userId: 'mod', role: 'moderator' }) }),
  ];
  const [room, others] = [session.room('page'), other.room('page')];
  t.teardown(room.subscribe(() => {}));
  t.teardown(others.subscribe(() => {}));
  await Promise.all([room.ready(), others.ready()]);
  const thread = await room.createThread({ body: 'hello' });
  const bodies = ({ threads }: RoomSnapshot): (string | undefined)[] =>
    threads.flatMap(({ comments }) =>
      comments.map(
        ({ body, status, pending }) =>
          `${body}${status === undefined ? '' : ` ${status}`}${pending === null ? '' : ` ${pending}`}`,
      ),
    );
  const both = (snapshot: RoomSnapshot, ...expected: string[]): boolean =>
    JSON.stringify(bodies(snapshot)) === JSON.stringify(expected);
  const queue = async () => (await tenant.request<{ items: { id: string }[] }>('GET', '/moderation')).json.items;
  const decide = async (decision: 'approve' | 'reject') =>
    tenant.request(
      'POST',
      `/moderation/${(await queue())[0]?.id}/${decision}`,
      decision === 'reject' ? { body: { reason: 'no' } } : {},
    );

  const held = await room.createComment(thread.id, { body: `${HELD_TEXT} 1` });
  t.equal(held.status, 'held');
  t.match(await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 1 held`)), {
    threads: [{ commentCount: 1 }],
  });
  await room.updateComment(held.id, { body: `${HELD_TEXT} 2` });
  await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 2 held`));
  room.reload();
  await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 2 held`));
  await decide('approve');
  t.match(await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 2`)), {
    threads: [{ commentCount: 2 }],
  });

  await room.updateComment(held.id, { body: `${HELD_TEXT} 3` });
  t.match(await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 3 held`)), {
    threads: [{ commentCount: 2 }],
  });
  t.ok(
    both(await snapshotOf(others, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 2`)), 'hello', `${HELD_TEXT} 2`),
    'a moderator sees what is published',
  );
  await decide('reject');
  await snapshotOf(room, (snapshot) => both(snapshot, 'hello', `${HELD_TEXT} 2`));

  const heldThread = await room.createThread({ body: HELD_TEXT });
  t.match(
    await snapshotOf(room, ({ threads }) => threads.length === 2 && threads.every(({ pending }) => pending === null)),
    { threads: [{}, {}] },
  );
  const shown = room.getSnapshot().threads.find(({ id }) => id === heldThread.id);
  t.match(shown, { status: 'held', comments: [{ status: 'held' }] });
  await room.deleteComment(shown?.comments[0]?.id ?? '');
  await snapshotOf(room, ({ threads }) => threads.length === 1);
  t.strictSame(
    room.getSnapshot().threads.map(({ id }) => id),
    [thread.id],
    'withdrawn',
  );
  t.strictSame(await queue(), []);
});

t.test('only the author changes a comment; the refusal says so and the text comes back', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const ann = openSession(t, tenant, 'ann').room('page');
  const bob = openSession(t, tenant, 'bob').room('page');
  await Promise.all([ann.ready(), bob.ready()]);
  t.teardown(bob.subscribe(() => {}));
  const { id } = await ann.createThread({ body: 'of ann' });
  const { threads } = await snapshotOf(bob, (snapshot) => snapshot.threads.length === 1);
  await t.rejects(bob.updateComment(threads[0]?.comments[0]?.id ?? '', { body: 'of bob' }), { code: 'forbidden' });
  t.match(bob.getSnapshot().threads, [{ id, comments: [{ body: 'of ann', pending: null }] }]);
});

t.test('what is written without a connection is sent on the next one, once', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const sockets = new CuttableSockets();
  const session = openSession(t, tenant, 'ann', { WebSocket: sockets.WebSocket });
  const room = session.room('page');
  await room.ready();
  t.teardown(room.subscribe(() => {}));
  const written = Array.from({ length: 30 }, (_, n) => {
    if (n % 3 === 0) sockets.cut();
    return room.createThread({ body: `thread ${n}` });
  });
  const ids = (await Promise.all(written)).map(({ id }) => id);
  t.equal(new Set(ids).size, 30);
  await stateOf(session, ({ status }) => status === 'live');
  const { json } = await tenant.request<{ items: { id: string }[] }>('GET', '/rooms/page/threads');
  t.strictSame(json.items.map(({ id }) => id).toSorted(), ids.toSorted());
  t.ok(sockets.opened > 1, 'there were several connections');
});

t.test('closing rejects what waits, and says why', async (t) => {
  const tenant = await (await startService(t)).tenant('acme');
  const session = openSession(t, tenant, 'ann');
  const room = session.room('page');
  await room.ready();
  const waiting = room.createThread({ body: 'hello' }).catch((error: CollabError) => error.code);
  session.close();
  t.equal(await waiting, 'closed');
  t.match(session.getSnapshot(), { status: 'closed', error: null });
});
