import t from 'tap';
import { createWorld, startWorker } from '../helpers/realtime.ts';
import type { Frame } from '../helpers/socket.ts';
import { Backend } from '../helpers/writing.ts';

type Row = Record<string, unknown>;
const reactionOf = (frame: Frame): Row => frame.data?.['reaction'] as Row;
const refusal = ({ type, error }: Frame): unknown => [type, error?.code];

await t.test('a browser adds and removes a reaction, and all sockets receive both events', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const other = await startWorker(t, world, {}, 'w2');
  const threadId = await backend.thread('lobby');
  const commentId = await backend.comment(threadId);
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  const watcher = await other.join(await world.token({ userId: 'watcher' }));

  const added = await ann.request('reaction.add', { commentId, emoji: '🎉', userId: 'mallory' });
  t.equal(added.type, 'ok');
  const reaction = reactionOf(added);
  t.match(reaction, { commentId, threadId, userId: 'ann', emoji: '🎉' });
  t.strictSame(
    reactionOf(await ann.request('reaction.add', { commentId, emoji: '🎉' })),
    reaction,
    'adding it again returns the same',
  );
  t.strictSame((await ann.request('reaction.remove', { reactionId: reaction['reactionId'] })).data, { deleted: true });

  await watcher.frame('reaction.deleted');
  const seen = watcher.frames.filter(({ type }) => type.startsWith('reaction.'));
  t.match(seen, [
    { type: 'reaction.created', roomId: 'lobby', threadId, actor: { userId: 'ann', via: 'ws' }, data: reaction },
    {
      type: 'reaction.deleted',
      roomId: 'lobby',
      threadId,
      actor: { userId: 'ann', via: 'ws' },
      data: { reactionId: reaction['id'], commentId, threadId, userId: 'ann', emoji: '🎉' },
    },
  ]);
});

await t.test('reactions follow the rules of REST', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const worker = await startWorker(t, world);
  const commentId = await backend.comment(await backend.thread('lobby'));
  const ann = await worker.join(await world.token({ userId: 'ann' }));
  const bob = await worker.join(await world.token({ userId: 'bob' }));
  const viewer = await worker.join(await world.token({ userId: 'viewer', role: 'viewer' }));
  const moderator = await worker.join(await world.token({ userId: 'moderator', role: 'moderator' }));
  const elsewhere = await worker.join(await world.token({ userId: 'elsewhere', rooms: ['docs'] }));
  const reactionId = reactionOf(await ann.request('reaction.add', { commentId, emoji: '👍' }))['id'];

  for (const socket of [viewer, elsewhere]) {
    t.strictSame(refusal(await socket.request('reaction.add', { commentId, emoji: '👍' })), ['error', 'forbidden']);
    t.strictSame(refusal(await socket.request('reaction.remove', { reactionId })), ['error', 'forbidden']);
  }
  t.strictSame(refusal(await bob.request('reaction.remove', { reactionId })), ['error', 'forbidden']);
  t.equal((await moderator.request('reaction.remove', { reactionId })).type, 'ok');
  t.strictSame(refusal(await ann.request('reaction.remove', { reactionId })), ['error', 'reaction_not_found']);
  t.strictSame(refusal(await ann.request('reaction.add', { commentId, emoji: 'yes' })), ['error', 'invalid_request']);
  t.match((await ann.request('reaction.add', { emoji: '👍' })).error, { message: 'data.commentId is required' });
  t.match((await ann.request('reaction.remove', {})).error, { message: 'data.reactionId is required' });
});

await t.test('concurrent reactions over two workers are all recorded', async (t) => {
  const world = await createWorld(t);
  const backend = await Backend.of(world);
  const one = await startWorker(t, world);
  const two = await startWorker(t, world, {}, 'w2');
  const commentId = await backend.comment(await backend.thread('lobby'));
  const users = Array.from({ length: 8 }, (_, i) => `user-${i}`);
  const sockets = await Promise.all(
    users.map(async (userId, i) => (i % 2 === 0 ? one : two).join(await world.token({ userId }))),
  );
  const replies = await Promise.all(
    sockets.map((socket) => socket.request('reaction.add', { commentId, emoji: '👍' })),
  );
  t.ok(replies.every((reply) => reply.type === 'ok'));
  const [first] = sockets;
  const created = await first?.until(() => {
    const events = first.frames.filter(({ type }) => type === 'reaction.created');
    return events.length === users.length && events;
  });
  t.strictSame(created?.map(({ data }) => data?.['userId']).toSorted(), users);
});
