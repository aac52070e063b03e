import t from 'tap';
import { createComment, deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import { addComment, createWorld, startThread } from './world.ts';

await t.test('a comment is found by its id, whether we made it or the client chose it to look as if', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const ours = await addComment(world, threadId);
  const lookalike = `${ours.id.slice(0, -4)}zzzz`;
  const chosen = await addComment(world, threadId, { id: lookalike });
  t.equal(chosen.id, lookalike);
  for (const id of [ours.id, lookalike]) {
    t.match(JSON.parse(await editComment(world.ctx, world.backend, id, { body: `edited ${id}` })), { comment: { id, body: `edited ${id}` } });
  }
  await t.rejects(createComment(world.ctx, world.backend, threadId, { id: ours.id, userId: 'ann', body: 'again' }, null), { code: 'id_taken' });
  await t.rejects(createComment(world.ctx, world.backend, threadId, { id: lookalike, userId: 'ann', body: 'again' }, null), { code: 'id_taken' });
  for (const id of [ours.id, lookalike]) {
    await deleteComment(world.ctx, world.backend, id);
    await t.rejects(editComment(world.ctx, world.backend, id, { body: 'gone' }), { code: 'comment_not_found' });
  }
  t.equal((await addComment(world, threadId, { id: ours.id })).id, ours.id, 'an id that is free again can be chosen');
});

await t.test('in a thread whose id the client chose, comments are found as well', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world, 'room', { id: 'my-own-thread' });
  t.equal(threadId, 'my-own-thread');
  const comment = await addComment(world, threadId);
  t.match(JSON.parse(await editComment(world.ctx, world.backend, comment.id, { body: 'edited' })), { comment: { body: 'edited' } });
});

await t.test('an id that tells a place where nothing is, is not found', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { id } = await addComment(world, threadId);
  // No id that we make has a u.
  for (const wrong of [`${id.slice(0, -1)}u`, `cm_${'0'.repeat(20)}_${'0'.repeat(16)}`, `cm_${'z'.repeat(20)}_${'z'.repeat(16)}`, 'x', ' ', 'a/b', 'ü']) {
    await t.rejects(editComment(world.ctx, world.backend, wrong, { body: 'x' }), { code: 'comment_not_found' }, wrong);
  }
});
