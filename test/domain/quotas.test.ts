import t from 'tap';
import { createComment, deleteComment } from '../../src/domain/comments/comments.ts';
import type { Actor } from '../../src/domain/access/actor.ts';
import { usageOf } from '../../src/domain/records/partitions.ts';
import { clearState, writeState } from '../../src/domain/rooms/shared-state.ts';
import { deleteRoom, sweepRemovals } from '../../src/domain/rooms/room-removal.ts';
import { deleteThread } from '../../src/domain/comments/threads.ts';
import { countWrite, readUsage, TOTAL_KEY, type Usage, userUsageKey } from '../../src/domain/quotas/usage.ts';
import { findUsageDifferences } from '../../src/domain/quotas/usage-check.ts';
import { ensureCounted, recountUsage } from '../../src/domain/quotas/usage-count.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { Quotas } from '../../src/model/environments/quotas.ts';
import { addComment, createWorld, startThread, type World } from './world.ts';

const always = (): boolean => true;
const MB = 1024 * 1024;

/** The actor, in the same environment with other quotas. */
function under<A extends Actor>(actor: A, quotas: Partial<Quotas>): A {
  const environment: Environment = { ...actor.environment, settings: { ...actor.environment.settings, quotas } };
  return { ...actor, environment };
}

async function usages({ ctx, environment }: World): Promise<{ total: Usage; ann: Usage; bob: Usage }> {
  const [total, ann, bob] = await Promise.all(
    [TOTAL_KEY, userUsageKey('ann'), userUsageKey('bob')].map((key) => readUsage(ctx.store, environment.id, key)),
  );
  return { total: total as Usage, ann: ann as Usage, bob: bob as Usage };
}

/** Asserts that a recount changes nothing. */
async function countsHold(t: Parameters<typeof createWorld>[0], world: World, what: string): Promise<void> {
  const before = await world.ctx.store.range(usageOf(world.environment.id));
  await recountUsage(world.ctx, world.environment.id);
  t.strictSame(await world.ctx.store.range(usageOf(world.environment.id)), before, what);
}

await t.test('comments are counted for the environment and the author until they are deleted', async (t) => {
  const world = await createWorld(t);
  const { ctx, backend, ann, bob } = world;
  const { threadId } = await startThread(world);
  const { id } = await addComment(world, threadId);
  await createComment(ctx, bob, threadId, { body: 'x' }, null);
  t.match(await usages(world), { total: { comments: 3 }, ann: { comments: 2 }, bob: { comments: 1 } });
  await countsHold(t, world, 'the same as counted anew');

  await deleteComment(ctx, ann, id);
  t.match(await usages(world), { total: { comments: 2 }, ann: { comments: 1 } });
  await deleteThread(ctx, backend, threadId);
  t.match(await usages(world), { total: { comments: 0 }, ann: { comments: 0 }, bob: { comments: 0 } });

  for (let i = 0; i < 3; i++) await startThread(world, 'gone');
  await deleteRoom(ctx, backend, 'gone');
  await sweepRemovals(ctx, world.environment.id);
  t.match(await usages(world), { total: { comments: 0 } });
  await countsHold(t, world, 'still the same');
});

await t.test('a user above the quota of comments is refused, a backend is not', async (t) => {
  const world = await createWorld(t);
  const { ctx } = world;
  const quotas = { userComments: 2 };
  const [ann, backend] = [under(world.ann, quotas), under(world.backend, quotas)];
  const { threadId } = await startThread(world);
  await createComment(ctx, ann, threadId, { body: 'second' }, null);
  const refusal = {
    code: 'quota_exceeded',
    message:
      'The quota userComments is used up: a user may have 2 comments. Delete some, or ask the operator to raise it (collab env update <slug> --quotas userComments=<n>)',
  };
  await t.rejects(createComment(ctx, ann, threadId, { body: 'third' }, null), refusal);
  t.match(await usages(world), { total: { comments: 2 }, ann: { comments: 2 } }, 'a refused write counts nothing');
  await createComment(ctx, under(world.bob, quotas), threadId, { body: 'bob’s' }, null);
  const { body } = await createComment(ctx, backend, threadId, { userId: 'ann', body: 'by the backend' }, null);
  await deleteComment(ctx, backend, (JSON.parse(body) as { comment: { id: string } }).comment.id);
  await t.rejects(createComment(ctx, ann, threadId, { body: 'third' }, null), refusal);
  await createComment(ctx, under(world.ann, { userComments: null }), threadId, { body: 'no bound' }, null);
});

await t.test('the quota of the environment applies to all actors', async (t) => {
  const world = await createWorld(t);
  const quotas = { comments: 1 };
  const { threadId } = await startThread(world);
  for (const actor of [under(world.ann, quotas), under(world.backend, quotas)]) {
    await t.rejects(createComment(world.ctx, actor, threadId, { userId: 'ann', body: 'x' }, null), {
      code: 'quota_exceeded',
      message: /^The quota comments is used up: the environment may hold 1 comments/,
    });
  }
  const results = await Promise.allSettled(
    Array.from({ length: 10 }, () =>
      createComment(world.ctx, under(world.ann, { comments: 4 }), threadId, { body: 'x' }, null),
    ),
  );
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 3, 'together as one by one');
});

await t.test('shared states are counted for the user who wrote them last', async (t) => {
  const world = await createWorld(t);
  const { ctx } = world;
  const quotas = { userStateMb: 2, stateMb: 3 };
  const [ann, bob, backend] = [under(world.ann, quotas), under(world.bob, quotas), under(world.backend, quotas)];
  const put = (actor: Actor, room: string, bytes: number) =>
    writeState(ctx, actor, room, Buffer.alloc(bytes, 1), false, always);
  await put(ann, 'a', MB);
  await put(ann, 'b', MB);
  await t.rejects(put(ann, 'c', 1), { code: 'quota_exceeded', message: /quota userStateMb/ });
  await put(ann, 'b', MB - 1);
  t.match(await usages(world), { total: { stateBytes: 2 * MB - 1 }, ann: { stateBytes: 2 * MB - 1 } });
  await put(bob, 'b', MB);
  t.match(await usages(world), { total: { stateBytes: 2 * MB }, ann: { stateBytes: MB }, bob: { stateBytes: MB } });
  await t.rejects(put(backend, 'd', MB + 1), { code: 'quota_exceeded', message: /quota stateMb/ });
  await put(backend, 'd', MB);
  await put(under(world.ann, { stateMb: 1 }), 'a', 10);
  t.match(await usages(world), { ann: { stateBytes: 10 } }, 'a smaller state is possible whatever the quota');
  await countsHold(t, world, 'the same as counted anew');
  await clearState(ctx, backend, 'a');
  await deleteRoom(ctx, backend, 'b');
  t.match(await usages(world), { total: { stateBytes: MB }, ann: { stateBytes: 0 }, bob: { stateBytes: 0 } });
});

await t.test('a store without counts is counted, with concurrent writes', async (t) => {
  const world = await createWorld(t);
  const { ctx, environment } = world;
  const { threadId } = await startThread(world);
  for (let i = 0; i < 20; i++) await addComment(world, threadId);
  const counts = await ctx.store.range(usageOf(environment.id));
  await ctx.store.transact(async (tx) => {
    for (const { key } of counts) tx.delete(usageOf(environment.id), key);
  });
  await addComment(world, threadId);
  t.match(await usages(world), { total: { comments: 1 } }, 'as an earlier version left it');
  t.equal(await ensureCounted(ctx, environment.id), true);
  t.match(await usages(world), { total: { comments: 22 }, ann: { comments: 22 } });
  t.equal(await ensureCounted(ctx, environment.id), false, 'once');
});

await t.test('counts that differ from what is stored are found, and a recount corrects them', async (t) => {
  const world = await createWorld(t);
  const { ctx, environment } = world;
  const { threadId } = await startThread(world);
  await addComment(world, threadId);
  const differences = () => findUsageDifferences(ctx, environment.id);
  t.strictSame(await differences(), []);

  await ctx.store.transact(async (tx) => {
    tx.put(usageOf(environment.id), userUsageKey('ann'), '5 7 0');
    tx.put(usageOf(environment.id), userUsageKey('gone'), '0 0 9');
  });
  t.strictSame(await differences(), [
    { userId: 'ann', kind: 'comments', counted: 5, stored: 2 },
    { userId: 'ann', kind: 'uploadBytes', counted: 7, stored: 0 },
    { userId: 'gone', kind: 'stateBytes', counted: 9, stored: 0 },
  ]);
  await ctx.store.transact(async (tx) => tx.delete(usageOf(environment.id), TOTAL_KEY));
  t.match(await differences(), [
    { userId: null, kind: 'comments', counted: 0, stored: 2 },
    { userId: 'ann' },
    { userId: 'ann' },
    { userId: 'gone' },
  ]);

  await recountUsage(ctx, environment.id);
  t.strictSame(await differences(), []);
});

await t.test(
  'a count that changes during the comparison is no difference, and neither is an environment without counts',
  async (t) => {
    const world = await createWorld(t);
    const { ctx, environment } = world;
    const { threadId } = await startThread(world);
    const partitions = ctx.store.partitions.bind(ctx.store);
    ctx.store.partitions = async (...args) => {
      const found = await partitions(...args);
      await addComment(world, threadId);
      return found;
    };
    t.strictSame(await findUsageDifferences(ctx, environment.id), []);
    ctx.store.partitions = partitions;

    const counts = await ctx.store.range(usageOf(environment.id));
    await ctx.store.transact(async (tx) => {
      for (const { key } of counts) tx.delete(usageOf(environment.id), key);
    });
    t.strictSame(
      await findUsageDifferences(ctx, environment.id),
      [],
      'a store of an earlier version, before its first count',
    );
  },
);

await t.test('the writes of a user per minute are bounded, those of a backend are not', async (t) => {
  const world = await createWorld(t);
  const [ann, bob, backend] = [world.ann, world.bob, world.backend].map((actor) =>
    under(actor, { userWritesPerMinute: 60 }),
  );
  for (let i = 0; i < 60; i++) await countWrite(world.ctx, ann as Actor);
  await t.rejects(async () => countWrite(world.ctx, ann as Actor), {
    code: 'rate_limited',
    retryAfter: 1,
    message: 'A user may write 60 times a minute (quota userWritesPerMinute). Try again in 1s',
  });
  await countWrite(world.ctx, bob as Actor);
  for (let i = 0; i < 100; i++) await countWrite(world.ctx, backend as Actor);
  world.clock.advance(1_000);
  await countWrite(world.ctx, ann as Actor);
  await t.rejects(async () => countWrite(world.ctx, ann as Actor), { code: 'rate_limited' });
  await countWrite(world.ctx, under(world.ann, { userWritesPerMinute: null }));
});
