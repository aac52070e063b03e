import t from 'tap';
import { createComment, editComment } from '../../src/domain/comments/comments.ts';
import { addReaction } from '../../src/domain/comments/reactions.ts';
import { createThread, setResolved } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { FilterOutcome, Filters } from '../../src/ports/filters.ts';
import { createWorld, startThread } from './world.ts';

/** Filters of every name that decide as given, and what they were called with. */
function filtersThat(outcome: FilterOutcome): { filters: Filters; calls: { name: string; payload: unknown }[] } {
  const calls: { name: string; payload: unknown }[] = [];
  const filters: Filters = {
    has: () => true,
    run: (name, _environment, _actor, payload) => {
      calls.push({ name, payload });
      return Promise.resolve(outcome);
    },
  };
  return { filters, calls };
}

const reject: FilterOutcome = { outcome: 'reject', plugin: 'rules', message: 'No links, please', status: 403 };

await t.test('every kind of write goes through its filter, which may refuse it', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const { filters, calls } = filtersThat(reject);
  const ctx: Context = { ...world.ctx, filters };
  const refusal = { code: 'content_rejected', message: 'No links, please' };
  await t.rejects(createComment(ctx, world.ann, threadId, { body: 'x' }, null), refusal);
  await t.rejects(editComment(ctx, world.ann, commentId, { body: 'x' }), refusal);
  await t.rejects(createThread(ctx, world.ann, 'room', { body: 'x' }, null), refusal);
  await t.rejects(setResolved(ctx, world.ann, threadId, true), refusal);
  await t.rejects(addReaction(ctx, world.ann, commentId, { emoji: '👍' }, null), refusal);
  t.strictSame(
    calls.map(({ name }) => name),
    ['comment.create', 'comment.update', 'thread.create', 'thread.resolve', 'reaction.create'],
  );
  t.match(calls[1]?.payload, {
    roomId: 'room',
    threadId,
    commentId,
    before: { body: 'first' },
    comment: { body: 'x', userId: 'ann' },
  });
  t.equal((await world.events()).length, 1, 'nothing was written');
});

await t.test('a filter runs after validation and authorization', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const { filters, calls } = filtersThat(reject);
  const ctx: Context = { ...world.ctx, filters };
  await t.rejects(createComment(ctx, world.ann, 'th_unknown', { body: 'x' }, null), { code: 'thread_not_found' });
  await t.rejects(createComment(ctx, world.ann, threadId, { body: '' }, null), { code: 'invalid_request' });
  await t.rejects(editComment(ctx, world.bob, commentId, { body: 'x' }), { code: 'forbidden' });
  await t.rejects(createThread(ctx, { ...world.ann, rooms: ['other'] }, 'room', { body: 'x' }, null), {
    code: 'forbidden',
  });
  await setResolved(world.ctx, world.backend, threadId, true);
  await t.resolves(setResolved(ctx, world.backend, threadId, true), 'nothing would change');
  t.equal(calls.length, 0);
});

await t.test('what a filter changes is what is stored, sent and announced', async (t) => {
  const world = await createWorld(t);
  const { threadId, commentId } = await startThread(world);
  const { filters } = filtersThat({ outcome: 'pass', fields: { body: 'clean', mentions: ['bob', 'bob'] } });
  const ctx: Context = { ...world.ctx, filters };
  const { comment } = JSON.parse(
    (await createComment(ctx, world.ann, threadId, { body: 'dirty', metadata: { kept: 1 } }, null)).body,
  ) as { comment: Comment };
  t.match(comment, { body: 'clean', mentions: ['bob'], metadata: { kept: 1 }, userId: 'ann' });
  const edited = JSON.parse(await editComment(ctx, world.ann, commentId, { body: 'dirty' })) as { comment: Comment };
  t.match(edited.comment, { body: 'clean', mentions: ['bob'] });
  t.match(
    (await world.events()).map(({ data }) => (data as { body?: string }).body),
    [undefined, 'clean', 'clean'],
  );
});

await t.test('a repeated request gets the stored answer and is not filtered again', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const { filters, calls } = filtersThat({ outcome: 'pass', fields: { body: 'clean' } });
  const ctx: Context = { ...world.ctx, filters };
  const request = { key: 'k', method: 'POST', path: '/x', bodyHash: 'h' };
  const first = await createComment(ctx, world.ann, threadId, { body: 'dirty' }, request);
  const rejecting: Context = { ...world.ctx, filters: filtersThat(reject).filters };
  const second = await createComment(rejecting, world.ann, threadId, { body: 'dirty' }, request);
  t.strictSame(second, { ...first, status: 201, replayed: true });
  t.equal(calls.length, 1);
});

await t.test('a filter that returns a text makes no edit of a change of the metadata alone', async (t) => {
  const world = await createWorld(t);
  const { commentId } = await startThread(world);
  const { filters } = filtersThat({
    outcome: 'pass',
    fields: { body: 'first, seen by a filter', metadata: { tag: 1, seen: true } },
  });
  const edited = (
    JSON.parse(await editComment({ ...world.ctx, filters }, world.backend, commentId, { metadata: { tag: 1 } })) as {
      comment: Comment;
    }
  ).comment;
  t.match(edited, { body: 'first', metadata: { tag: 1, seen: true }, editedAt: null });
});
