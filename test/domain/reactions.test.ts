import t from 'tap';
import { createComment, deleteComment, editComment, listComments } from '../../src/domain/comments/comments.ts';
import type { Idempotency } from '../../src/domain/idempotency.ts';
import { updateEnvironment } from '../../src/domain/environments/environments.ts';
import { addReaction, removeReaction } from '../../src/domain/comments/reactions.ts';
import { getRoom } from '../../src/domain/rooms/rooms.ts';
import { deleteThread } from '../../src/domain/comments/threads.ts';
import { putUser } from '../../src/domain/users/users.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Reaction } from '../../src/model/reaction.ts';
import { addComment, createWorld, itemsOf, query, startThread, type World } from './world.ts';

const reactionOf = ({ body }: { body: string }): Reaction => (JSON.parse(body) as { reaction: Reaction }).reaction;

async function commentsOf({ peer, backend }: World, threadId: string): Promise<Comment[]> {
  return itemsOf<Comment>(await listComments(peer, backend, threadId, query('comments')));
}

await t.test('a reaction has every field, is part of its comment, and emits an event', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  world.clock.advance(1000);
  const outcome = await addReaction(world.ctx, world.backend, commentId, { userId: 'bob', emoji: '👍' }, null);
  const reaction = reactionOf(outcome);
  t.equal(outcome.status, 201);
  t.strictSame(reaction, {
    id: reaction.id,
    reactionId: reaction.id,
    commentId,
    threadId,
    userId: 'bob',
    emoji: '👍',
    createdAt: '2026-01-02T03:04:06.678Z',
  });
  t.strictSame((await commentsOf(world, threadId))[0]?.reactions, [reaction]);
  t.match((await world.events()).at(-1), {
    type: 'reaction.created',
    roomId: 'room',
    threadId,
    actor: { userId: 'bob', via: 'rest' },
    data: reaction,
  });
  const room = (await getRoom(world.peer, world.backend, 'room', { includeComments: true })).text;
  t.match(JSON.parse(room), {
    room: { lastActivityAt: reaction.createdAt },
    threads: [{ updatedAt: reaction.createdAt, comments: [{ editedAt: null, reactions: [reaction] }] }],
  });
});

await t.test('the same reaction again returns the existing one and emits no event', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const add = (emoji: string, userId = 'ann') =>
    addReaction(world.ctx, world.backend, commentId, { userId, emoji }, null);
  const first = await add('👍');
  const before = (await world.events()).length;
  const again = await add('👍');
  t.equal(again.status, 200);
  t.equal(again.body, first.body);
  t.equal((await world.events()).length, before);
  t.equal((await add('👍', 'bob')).status, 201);
  t.equal((await add('🎉')).status, 201);
});

await t.test('an Idempotency-Key returns the first answer, whatever happened since', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const once: Idempotency = { key: 'k', method: 'POST', path: '/p', bodyHash: 'h' };
  const first = await addReaction(world.ctx, world.backend, commentId, { userId: 'ann', emoji: '👍' }, once);
  await removeReaction(world.ctx, world.backend, reactionOf(first).id);
  t.strictSame(await addReaction(world.peer, world.backend, commentId, { userId: 'ann', emoji: '👍' }, once), {
    ...first,
    replayed: true,
  });
  await t.rejects(
    addReaction(world.ctx, world.backend, commentId, { userId: 'ann', emoji: '👍' }, { ...once, bodyHash: 'other' }),
    { code: 'idempotency_key_reused' },
  );
});

await t.test('an invalid reaction is refused with the reason', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const cases: [input: unknown, code: string, message: RegExp][] = [
    [{}, 'invalid_request', /^userId is required$/],
    [{ userId: 'ann' }, 'invalid_request', /^emoji is required$/],
    [{ userId: 'ann', emoji: 5 }, 'invalid_request', /^emoji must be a string(?:, not .+)?$/],
    [
      { userId: 'ann', emoji: '' },
      'invalid_request',
      /^emoji must be one emoji or a :shortcode:, 1 to 64 bytes of UTF-8(?:, not .+)?$/,
    ],
    [{ userId: 'ann', emoji: 'yes' }, 'invalid_request', /^emoji must be/],
    [{ userId: '', emoji: '👍' }, 'invalid_request', /^userId must be 1 to 128 characters(?:, not .+)?$/],
    [{ userId: 'nobody', emoji: '👍' }, 'unknown_user', /^Unknown user: nobody\./],
    [[], 'invalid_json', /./],
  ];
  for (const [input, code, message] of cases)
    await t.rejects(addReaction(world.ctx, world.backend, commentId, input, null), { code, message });
  for (const id of ['cm_unknown', '', 'a b', '../x', '\ud800', 'x'.repeat(5000)]) {
    await t.rejects(addReaction(world.ctx, world.backend, id, { userId: 'ann', emoji: '👍' }, null), {
      code: 'comment_not_found',
      message: 'Comment not found',
    });
  }
  t.equal((await world.events()).length, 1);
});

await t.test('a comment can have 20 different emoji, each from any number of users', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const add = (emoji: string, userId = 'ann') =>
    addReaction(world.ctx, world.backend, commentId, { userId, emoji }, null);
  for (let i = 0; i < 20; i++) await add(`:e${i}:`);
  await t.rejects(add('👍'), { code: 'invalid_request', message: 'A comment takes at most 20 different emoji' });
  t.equal((await add(':e7:', 'bob')).status, 201);
  t.equal((await add(':e7:')).status, 200);
  const environment = await updateEnvironment(world.ctx, world.environment.id, {
    settings: { limits: { reactionsPerComment: 21 } },
  });
  await t.rejects(
    addReaction(world.ctx, { ...world.backend, environment }, commentId, { userId: 'bob', emoji: ':e8:' }, null),
    { message: 'A comment takes at most 21 reactions' },
  );
});

await t.test(
  'users react as themselves and remove their own reactions; moderators and backends remove any',
  async (t) => {
    const world = await createWorld(t);
    const { threadId, commentId } = await startThread(world);
    const byAnn = reactionOf(await addReaction(world.ctx, world.ann, commentId, { userId: 'bob', emoji: '👍' }, null));
    t.equal(byAnn.userId, 'ann');
    const { id: reactionId } = byAnn;
    await t.rejects(removeReaction(world.ctx, world.bob, reactionId), { code: 'forbidden' });
    await t.rejects(removeReaction(world.ctx, { ...world.ann, role: 'viewer' }, reactionId), { code: 'forbidden' });
    await t.rejects(addReaction(world.ctx, { ...world.ann, role: 'viewer' }, commentId, { emoji: '👍' }, null), {
      code: 'forbidden',
    });
    await t.rejects(
      addReaction(world.ctx, { ...world.backend, scope: 'moderate' }, commentId, { userId: 'ann', emoji: '🎉' }, null),
      { code: 'forbidden' },
    );
    for (const rooms of [['other'], ['x*']]) {
      await t.rejects(addReaction(world.ctx, { ...world.ann, rooms }, commentId, { emoji: '🎉' }, null), {
        code: 'forbidden',
      });
      await t.rejects(removeReaction(world.ctx, { ...world.ann, rooms }, reactionId), { code: 'forbidden' });
    }
    t.equal(await removeReaction(world.ctx, world.ann, reactionId), '{"deleted":true}');
    t.match((await world.events()).at(-1), {
      type: 'reaction.deleted',
      threadId,
      actor: { userId: 'ann', via: 'ws' },
      data: { reactionId, commentId, threadId, userId: 'ann', emoji: '👍' },
    });
    t.strictSame((await commentsOf(world, threadId))[0]?.reactions, []);
    for (const actor of [
      { ...world.bob, role: 'moderator' as const },
      { ...world.backend, scope: 'moderate' as const },
    ]) {
      const { id } = reactionOf(await addReaction(world.ctx, world.ann, commentId, { emoji: '👍' }, null));
      t.equal(await removeReaction(world.ctx, actor, id), '{"deleted":true}');
    }
  },
);

await t.test('an unknown reaction is not found, whatever its id looks like', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const { id } = reactionOf(
    await addReaction(world.ctx, world.backend, commentId, { userId: 'ann', emoji: '👍' }, null),
  );
  await removeReaction(world.ctx, world.backend, id);
  for (const unknown of [
    id,
    '',
    're_',
    commentId,
    `re_0_${commentId}`,
    're_0_cm_unknown',
    're_0_\ud800',
    'x'.repeat(5000),
  ]) {
    await t.rejects(removeReaction(world.ctx, world.backend, unknown), {
      code: 'reaction_not_found',
      message: 'Reaction not found',
    });
    await t.rejects(removeReaction(world.ctx, { ...world.backend, rooms: ['room'] }, unknown), {
      code: 'reaction_not_found',
    });
  }
});

await t.test('reactions survive an edit and are deleted with their comment, with any kind of id', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world, 'room', { id: 'my-thread' });
  const { id: commentId } = await addComment(world, threadId, { id: 'my_comment-1' });
  const { id } = reactionOf(
    await addReaction(world.ctx, world.backend, commentId, { userId: 'ann', emoji: '👍' }, null),
  );
  const edited = JSON.parse(await editComment(world.ctx, world.backend, commentId, { body: 'new' })) as {
    comment: Comment;
  };
  t.strictSame(
    edited.comment.reactions.map((reaction) => reaction.id),
    [id],
  );
  await deleteComment(world.ctx, world.backend, commentId);
  await t.rejects(removeReaction(world.ctx, world.backend, id), { code: 'reaction_not_found' });
  const { id: second } = await addComment(world, threadId);
  const { id: another } = reactionOf(
    await addReaction(world.ctx, world.backend, second, { userId: 'ann', emoji: '👍' }, null),
  );
  await deleteThread(world.ctx, world.backend, threadId);
  await t.rejects(removeReaction(world.ctx, world.backend, another), { code: 'reaction_not_found' });
});

await t.test('concurrent reactions on two workers during an edit are all kept', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
  for (const userId of users) await putUser(world.ctx, world.backend, userId, {});
  const work = users.flatMap((userId, i) => [
    addReaction(i % 2 === 0 ? world.ctx : world.peer, world.backend, commentId, { userId, emoji: '👍' }, null),
    addReaction(i % 2 === 0 ? world.peer : world.ctx, world.backend, commentId, { userId, emoji: '👍' }, null),
  ]);
  const edits = [1, 2, 3].map((n) => editComment(world.peer, world.backend, commentId, { body: `edit ${n}` }));
  const outcomes = await Promise.all(work);
  await Promise.all(edits);
  t.equal(outcomes.filter(({ status }) => status === 201).length, users.length, 'each once');
  const [comment] = await commentsOf(world, threadId);
  t.strictSame(comment?.reactions.map(({ userId }) => userId).toSorted(), users.toSorted());
  t.match(comment?.body, /^edit/);
  t.equal((await world.events()).filter(({ type }) => type === 'reaction.created').length, users.length);
  await Promise.all(
    comment?.reactions.map(({ id }, i) => removeReaction(i % 2 === 0 ? world.ctx : world.peer, world.backend, id)) ??
      [],
  );
  t.strictSame((await commentsOf(world, threadId))[0]?.reactions, []);
  await createComment(world.ctx, world.backend, threadId, { userId: 'ann', body: 'x' }, null);
});
