import t from 'tap';
import { backtest, type BacktestResult } from '../../src/domain/moderation/backtest.ts';
import type { Filters } from '../../src/ports/filters.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { addComment, createWorld, START, startThread } from './world.ts';

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
    for await (const result of backtest(world.ctx, holdingFilters, world.environment, {
      since,
      limit,
      setTime: () => {},
    }))
      results.push(result);
    return results;
  };
  const all = await run(null);
  t.strictSame(
    all.map(({ roomId, comment, outcome }) => `${roomId} ${comment.body} ${outcome.outcome}`),
    [`room ${HELD_TEXT} first hold`, 'room fine pass', `room ${HELD_TEXT} later hold`, 'other fine too pass'],
  );
  t.match(all[2], { comment: { id: later.id, userId: 'bob' }, outcome: { plugin: 'rules', reason: 'it says so' } });
  t.equal((await run(later.createdAt)).length, 3);
  t.strictSame(
    (await run(null, 2)).map(({ comment }) => comment.body),
    [`${HELD_TEXT} later`, 'fine too'],
    'the latest ones',
  );
  t.strictSame(await world.ctx.store.partitions(''), before);
});

t.test('comments of all threads are tested in the order of their creation, each at its time', async (t) => {
  const world = await createWorld(t);
  const { threadId: one } = await startThread(world, 'room', { body: '1' });
  world.clock.advance(60_000);
  const { threadId: two } = await startThread(world, 'other', { body: '2' });
  for (const [index, threadId] of [one, two, two, one].entries()) {
    world.clock.advance(60_000);
    await addComment(world, threadId, { body: String(index + 3) });
  }
  const seen: string[] = [];
  let now = 0;
  const filters: Filters = {
    ...holdingFilters,
    run: (name, _environment, _actor, payload) => {
      seen.push(`${name} ${(payload as { comment: { body: string } }).comment.body} ${(now - START) / 60_000}`);
      return Promise.resolve({ outcome: 'pass', fields: {} });
    },
  };
  for await (const { comment } of backtest(world.ctx, filters, world.environment, {
    since: null,
    limit: 100,
    setTime: (ms) => void (now = ms),
  }))
    t.equal(now, Date.parse(comment.createdAt));
  t.strictSame(seen, [
    'thread.create 1 0',
    'thread.create 2 1',
    'comment.create 3 2',
    'comment.create 4 3',
    'comment.create 5 4',
    'comment.create 6 5',
  ]);
});
