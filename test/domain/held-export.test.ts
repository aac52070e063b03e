import t from 'tap';
import { verifyChain } from '../../src/domain/audit/verify.ts';
import { exportEnvironment, exportHead } from '../../src/domain/transfer/export.ts';
import { Import } from '../../src/domain/transfer/import.ts';
import { deleteComment, listComments } from '../../src/domain/comments/comments.ts';
import { approveItem } from '../../src/domain/moderation/decisions.ts';
import { listHeldOf, listItems } from '../../src/domain/moderation/items.ts';
import { reportComment } from '../../src/domain/moderation/reports.ts';
import { createComment, editComment } from '../../src/domain/comments/comments.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import type { Actor } from '../../src/domain/access/actor.ts';
import type { ModerationItem } from '../../src/model/moderation.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { addComment, createWorld, itemsOf, query, startThread } from './world.ts';

const LONGEST_ROOM_ID = 'r'.repeat(512);

const itemsIn = async (ctx: Context, actor: Actor, state: string): Promise<ModerationItem[]> =>
  itemsOf<ModerationItem>(await listItems(ctx, actor, query('moderation', `state=${state}`)));

t.test('undecided items are exported, and can be decided after the import', async (t) => {
  const from = await createWorld(t);
  const { threadId, commentId } = await startThread(from);
  const ctx: Context = { ...from.ctx, filters: holdingFilters };
  await createComment(ctx, from.ann, threadId, { body: `${HELD_TEXT} comment`, id: 'chosen-by-ann' }, null);
  await createThread(ctx, from.backend, LONGEST_ROOM_ID, { userId: 'ann', body: `${HELD_TEXT} thread` }, null);
  await editComment(ctx, from.ann, commentId, { body: `${HELD_TEXT} edit` });
  await reportComment(ctx, from.bob, commentId, { reason: 'rude' }, null);
  const lines = [exportHead()];
  const options = { withSecrets: true, onMissing: () => {} };
  for await (const line of exportEnvironment(from.ctx, from.environment, options)) lines.push(line);

  const to = await createWorld(t);
  const work = new Import(to.ctx, { skipExisting: false });
  for (const line of lines.map((text) => text.replaceAll('"slug":"dev"', '"slug":"moved"'))) await work.add(line);
  work.finish();
  const [environment] = work.done;
  const backend: Actor = { ...from.backend, environment: environment ?? from.environment };
  t.strictSame(
    (await itemsIn(to.ctx, backend, 'held')).map(({ kind }) => kind),
    ['comment', 'thread', 'edit'],
  );
  t.match(await itemsIn(to.ctx, backend, 'reported'), [
    { commentId, reportCount: 1, reports: [{ userId: 'bob', reason: 'rude' }] },
  ]);
  t.equal(
    (
      await reportComment(
        to.ctx,
        { ...from.bob, environment: backend.environment },
        commentId,
        { reason: 'rude' },
        null,
      )
    ).status,
    200,
    'still once per user',
  );
  t.strictSame(
    itemsOf<{ body: string }>(await listComments(to.ctx, backend, threadId, query('comments'))).map(({ body }) => body),
    ['first'],
  );
  to.clock.advance(1_000);
  for (const { id } of await itemsIn(to.ctx, backend, 'held')) await approveItem(to.ctx, backend, id, null);
  t.strictSame(
    itemsOf<{ body: string }>(await listComments(to.ctx, backend, threadId, query('comments'))).map(({ body }) => body),
    [`${HELD_TEXT} edit`, `${HELD_TEXT} comment`],
  );
  t.strictSame(itemsOf(await listHeldOf(to.ctx, backend, 'ann', query('moderation'))), []);

  for (const [part, fault] of [
    ['"state":"held"', /state must be/],
    ['"kind":"comment"', /thread must be|comment must be|state must be/],
  ] as const) {
    const changed = lines
      .map((line) =>
        line.startsWith('{"type":"moderation-item"')
          ? line.replace(part, part.includes('state') ? '"state":"reported"' : '"kind":"thread"')
          : line,
      )
      .map((text) => text.replaceAll('"slug":"dev"', '"slug":"again"'));
    const other = await createWorld(t);
    const refused = new Import(other.ctx, { skipExisting: false });
    await t.rejects(
      changed.reduce((before, line) => before.then(() => refused.add(line)), Promise.resolve()),
      fault,
    );
    await refused.abandon();
  }
});

t.test('moderators who delete at once wait for each other, and every deletion is recorded', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world);
  const ids: string[] = [];
  for (let count = 0; count < 40; count++) ids.push((await addComment(world, threadId)).id);
  const moderator: Actor = { ...world.backend, scope: 'moderate' };
  await Promise.all(ids.map((id, at) => deleteComment(at % 2 === 0 ? world.ctx : world.peer, moderator, id)));
  const { head, faults } = await verifyChain(world.ctx, world.environment.id);
  t.strictSame([head.seq, faults], [41, []]);
});
