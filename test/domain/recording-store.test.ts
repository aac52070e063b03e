import t from 'tap';
import { appendAuditRecord } from '../../src/domain/audit/audit.ts';
import { RecordingStore, type WrittenRecord } from '../../src/domain/audit/recording-store.ts';
import { verifyChain } from '../../src/domain/audit/verify.ts';
import { addJobs, newJobs, retryJob } from '../../src/domain/plugins/jobs.ts';
import { PluginKv } from '../../src/domain/plugins/kv.ts';
import { auditOf, pluginKvOf } from '../../src/domain/records/partitions.ts';
import { createWorld, type World } from './world.ts';

/** The context of a command whose act is recorded, and what was written when it was. */
function commandIn({ ctx, environment }: World): { ctx: World['ctx']; commits: (readonly WrittenRecord[])[] } {
  const commits: (readonly WrittenRecord[])[] = [];
  const store = new RecordingStore(ctx.store, async (tx, written) => {
    commits.push(written);
    await appendAuditRecord(ctx, tx, environment.id, { action: 'plugin.command', target: { kind: 'plugin', id: 'p' } });
  });
  return { ctx: { ...ctx, store }, commits };
}

const countOf = async ({ ctx, environment }: World): Promise<number> =>
  (await ctx.store.range(auditOf(environment.id))).filter(({ value }) => value.includes('"plugin.command"')).length;

t.test(
  'the first commit that writes records the act, and only that one, also if several are made at once',
  async (t) => {
    const world = await createWorld(t);
    const { ctx, commits } = commandIn(world);
    const kv = new PluginKv(ctx, world.environment.id, 'p');
    await Promise.all(['a', 'b', 'c'].map((key) => kv.put(key, 1)));
    await kv.delete('a');
    t.strictSame(commits, [[{ partition: pluginKvOf(world.environment.id, 'p'), key: 'a' }]]);
    t.equal(await countOf(world), 1);
    t.strictSame(
      (await kv.list()).map(({ key }) => key),
      ['b', 'c'],
    );
    t.strictSame((await verifyChain(world.ctx, world.environment.id)).faults, []);
  },
);

t.test('reads, changes without effect and refused ones record nothing, and leave that to the next', async (t) => {
  const world = await createWorld(t);
  const { ctx } = commandIn(world);
  const kv = new PluginKv(ctx, world.environment.id, 'p');
  const queue = { environmentId: world.environment.id, plugin: 'p', queue: 'q' };
  await kv.list();
  await kv.delete('none');
  t.equal(await kv.replace('none', 1, 2), false);
  t.equal(await retryJob(ctx, queue, 'none'), false);
  await t.rejects(
    ctx.store.transact((tx) => {
      tx.put('partition', 'key', 'value');
      return Promise.reject(new Error('refused'));
    }),
    /refused/,
  );
  t.equal(await countOf(world), 0);
  await addJobs(ctx, queue, newJobs([{ id: 'job', payload: null }], ctx.clock.now()));
  t.equal(await countOf(world), 1);
});

t.test('an act that cannot be recorded is not done', async (t) => {
  const world = await createWorld(t);
  const store = new RecordingStore(world.ctx.store, () => Promise.reject(new Error('no record')));
  const kv = new PluginKv({ ...world.ctx, store }, world.environment.id, 'p');
  await t.rejects(kv.put('a', 1), /no record/);
  t.equal(await kv.get('a'), undefined);
});
