import t from 'tap';
import { backtest, type BacktestResult } from '../../src/domain/moderation/backtest.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { addComment, createWorld, startThread } from './world.ts';

t.test('a backtest shows what the filters would have done with stored comments, and changes nothing', async (t) => {
  const world = await createWorld(t);
  const { threadId } = await startThread(world, 'room', { body: `${HELD_TEXT} first` });
  world.clock.advance(60_000);
  await addComment(world, threadId, { body: 'fine' });
  const later = await addComment(world, threadId, { body: `${HELD_TEXT} later`, userId: 'bob' });
  await startThread(world, 'other', { body: 'fine too' });
  const before = await world.ctx.store.partitions('');
  const run = async (since: string | null, limit = 100): Promise<BacktestResult[]> => {
    const results: BacktestResult[] = [];
    for await (const result of backtest(world.ctx, holdingFilters, world.environment, { since, limit })) results.push(result);
    return results;
  };
  const all = await run(null);
  t.strictSame(all.map(({ roomId, comment, outcome }) => `${roomId} ${comment.body} ${outcome.outcome}`), [`room ${HELD_TEXT} first hold`, 'room fine pass', `room ${HELD_TEXT} later hold`, 'other fine too pass']);
  t.match(all[2], { comment: { id: later.id, userId: 'bob' }, outcome: { plugin: 'rules', reason: 'it says so' } });
  t.equal((await run(later.createdAt)).length, 3);
  t.equal((await run(null, 2)).length, 2);
  t.strictSame(await world.ctx.store.partitions(''), before);
});
