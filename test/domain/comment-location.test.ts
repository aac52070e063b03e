import t from 'tap';
import { createComment, deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import { addComment, createWorld, startThread } from './world.ts';

await t.test(
  'a comment is found by its id, whether the id was generated or a client chose one that looks generated',
  async (t) => {
    const world = await createWorld(t);
    const { threadId } = await startThread(world);
    const generated = await addComment(world, threadId);
    const lookalike = `${generated.id.slice(0, -4)}zzzz`;
    const chosen = await addComment(world, threadId, { id: lookalike });
    t.equal(chosen.id, lookalike);
    for (const id of [generated.id, lookalike]) {
      t.match(JSON.parse(await editComment(world.ctx, world.backend, id, { body: `edited ${id}` })), {
        comment: { id, body: `edited ${id}` },
      });
    }
    await t.rejects(
      createComment(world.ctx, world.backend, threadId, { id: generated.id, userId: 'ann', body: 'again' }, null),
      { code: 'id_taken' },
    );
    await t.rejects(
      createComment(world.ctx, world.backend, threadId, { id: lookalike, userId: 'ann', body: 'again' }, null),
      { code: 'id_taken' },
    );
    for (const id of [generated.id, lookalike]) {
      await deleteComment(world.ctx, world.backend, id);
      await t.rejects(editComment(world.ctx, world.backend, id, { body: 'gone' }), { code: 'comment_not_found' });
    }
    t.equal(
      (await addComment(world, threadId, { id: generated.id })).id,
      generated.id,
      'an id that is free again can be chosen',
    );
  },
);

await t.test('comments are found in a thread whose id the client chose', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world, 'room', { id: 'my-own-thread' });
  t.equal(threadId, 'my-own-thread');
  const comment = await addComment(world, threadId);
  t.match(JSON.parse(await editComment(world.ctx, world.backend, comment.id, { body: 'edited' })), {
    comment: { body: 'edited' },
  });
});

await t.test('an id that encodes a location without a comment is not found', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { id } = await addComment(world, threadId);
  // Generated ids never contain a u.
  for (const wrong of [
    `${id.slice(0, -1)}u`,
    `cm_${'0'.repeat(20)}_${'0'.repeat(16)}`,
    `cm_${'z'.repeat(20)}_${'z'.repeat(16)}`,
    'x',
    ' ',
    'a/b',
    'ü',
  ]) {
    await t.rejects(editComment(world.ctx, world.backend, wrong, { body: 'x' }), { code: 'comment_not_found' }, wrong);
  }
});
