import { join } from 'node:path';
import t, { type Test } from 'tap';
import { LocalBlobs } from '../../src/adapters/localfiles/blobs.ts';
import type { Context } from '../../src/domain/context.ts';
import {
  createEnvironment,
  deleteEnvironment,
  findDeletable,
  findEnvironment,
} from '../../src/domain/environments/environments.ts';
import { exportEnvironment, exportHead } from '../../src/domain/transfer/export.ts';
import { Import } from '../../src/domain/transfer/import.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import { sweepUnfinishedWork } from '../../src/domain/environments/unfinished-work.ts';
import { epochOf, streamOf } from '../../src/domain/events/streams.ts';
import type { Blobs } from '../../src/ports/blobs.ts';
import type { Store } from '../../src/ports/store.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { addComment, createWorld, startThread, type World } from './world.ts';

const HOUR = 3_600_000;

type WithBlobs = Context & { readonly blobs: Blobs };

interface Scene {
  readonly world: World;
  readonly ctx: WithBlobs;
}

/** The names of all records and files of the environment. */
async function leftOf({ world, ctx }: Scene): Promise<string[]> {
  const { id } = world.environment;
  const found = await ctx.blobs.environments();
  for (const { store } of [ctx, world.peer]) {
    for (const partition of await store.partitions(`e/${id}/`)) {
      for (const { key } of await store.range(partition)) found.push(`${partition} ${key}`);
    }
  }
  return found;
}

async function scene(t: Test): Promise<Scene> {
  const world = await createWorld(t);
  const blobs = new LocalBlobs({ path: join(tempFolder(t), 'files'), minFreeBytes: 0 });
  const ctx = { ...world.ctx, blobs };
  await createKey(ctx, world.environment, { kind: 'secret' });
  const { threadId } = await startThread(world);
  for (let n = 0; n < 3; n++) await addComment(world, threadId);
  await putBlob(ctx, world.environment.id);
  return { world, ctx };
}

async function putBlob({ blobs }: WithBlobs, environmentId: string): Promise<void> {
  const staged = await blobs.stage(environmentId, 'file_1');
  await staged.write(Buffer.from('bytes'));
  await staged.commit();
}

/** The error in a process that is killed at some point of a deletion. */
const crashes: Record<string, (ctx: WithBlobs) => WithBlobs> = {
  'before the files go': (ctx) => ({ ...ctx, blobs: failing(ctx.blobs, 'removeAll', 0) }),
  'before the records go': (ctx) => ({ ...ctx, store: failing(ctx.store, 'partitions', 0) }),
  'before the last commit': (ctx) => ({ ...ctx, store: failing(ctx.store, 'transact', 2) }),
};

/** The same object, but one method fails after a number of calls. */
function failing<T extends Store | Blobs>(real: T, method: keyof T, calls: number): T {
  let left = calls;
  return new Proxy(real, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (name === method && left-- <= 0) return () => Promise.reject(new Error('the process has ended'));
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

t.test('a deletion interrupted by a crash is finished by the sweep or by a second call', async (t) => {
  for (const [moment, crash] of Object.entries(crashes)) {
    for (const finish of ['sweep', 'second call'] as const) {
      await t.test(`${moment}, ${finish}`, async (t) => {
        const made = await scene(t);
        const { ctx, world } = made;
        const { id } = world.environment;
        t.not((await leftOf(made)).length, 0);
        await t.rejects(deleteEnvironment(crash(ctx), id), /the process has ended/);
        await t.rejects(findEnvironment(ctx, 'dev'), { code: 'environment_not_found' }, 'it is gone for callers');
        t.equal(await ctx.store.lastSeq(streamOf(world.environment)), 0);
        if (finish === 'sweep') await sweepUnfinishedWork({ ...world.peer, blobs: ctx.blobs });
        else await deleteEnvironment(ctx, (await findDeletable(ctx, 'dev')).id);
        t.strictSame(await leftOf(made), []);
        await t.rejects(deleteEnvironment(ctx, id), { code: 'environment_not_found' });
        await t.rejects(findDeletable(ctx, 'dev'), { code: 'environment_not_found' });
      });
    }
  }
});

t.test('late writes of a request are removed an hour after the deletion, and no record is left', async (t) => {
  const made = await scene(t);
  const { ctx, world } = made;
  await deleteEnvironment(ctx, world.environment.id);
  t.strictSame(await leftOf(made), []);
  const late = ctx.store.transact(async (tx) => tx.emit(streamOf(world.environment), () => '{}'));
  await t.rejects(late, { code: 'environment_not_found' }, 'what tells of itself in the stream is refused');
  await ctx.store.transact(async (tx) => tx.put(`e/${world.environment.id}/idem`, 'late', '{}'));
  await putBlob(ctx, world.environment.id);
  world.clock.advance(HOUR);
  await sweepUnfinishedWork(ctx);
  t.strictSame(await leftOf(made), []);
  t.strictSame(await ctx.store.range('leftovers'), []);
});

async function exported(ctx: Context, world: World): Promise<string[]> {
  const lines = [exportHead()];
  for await (const line of exportEnvironment(ctx, world.environment, { withSecrets: true, onMissing: () => undefined }))
    lines.push(line);
  return lines;
}

t.test('an environment that is imported again has a new stream, which begins at 1', async (t) => {
  const { ctx, world } = await scene(t);
  const lines = await exported(ctx, world);
  t.notOk(
    lines.some((line) => line.includes('streamId')),
    'the stream is not in the export',
  );
  const heard: string[] = [];
  world.peer.store.follow((stream, event) => heard.push(`${stream} ${event?.seq ?? 'end'}`));
  await deleteEnvironment(ctx, world.environment.id);
  const work = new Import(ctx, { skipExisting: false });
  for (const line of lines) await work.add(line);
  work.finish();
  const again = await findEnvironment(world.peer, 'dev');
  t.equal(again.id, world.environment.id);
  t.not(streamOf(again), streamOf(world.environment));
  t.not(epochOf(ctx.store, again), epochOf(ctx.store, world.environment));
  await t.rejects(startThread(world), { code: 'environment_not_found' }, 'a request from before is refused');
  await startThread({ ...world, backend: { ...world.backend, environment: again } });
  t.equal(await world.peer.store.lastSeq(streamOf(again)), 1);
  world.peer.store.poll();
  t.strictSame(heard, [`${streamOf(world.environment)} end`, `${streamOf(again)} 1`]);
  t.strictSame(await ctx.store.range('leftovers'), []);
  world.clock.advance(2 * HOUR);
  await sweepUnfinishedWork(ctx);
  t.equal(await world.peer.store.lastSeq(streamOf(again)), 1, 'no sweep takes it for what the deletion has left');
  t.not((await ctx.store.range(`e/${again.id}/keys`)).length, 0);
});

t.test(
  'the records of an interrupted import are removed after an hour, those of a running import are not',
  async (t) => {
    const made = await scene(t);
    const { ctx, world } = made;
    const lines = await exported(ctx, world);
    await deleteEnvironment(ctx, world.environment.id);
    const user = JSON.parse(lines.find((line) => line.includes('"user"')) ?? '') as { data: object };
    let users = 0;
    const padding = (): string => {
      const id = `padding-${++users}`;
      return JSON.stringify({ type: 'user', data: { ...user.data, id, userId: id, metadata: {} } });
    };
    const dies = new Import(ctx, { skipExisting: false });
    for (const line of lines.slice(0, 3)) await dies.add(line);
    // Long enough for a separate commit.
    for (let n = 0; n < 3_000; n++) await dies.add(padding());
    t.not((await leftOf(made)).length, 0);
    for (let minutes = 0; minutes < 180; minutes += 30) {
      world.clock.advance(HOUR / 2);
      await dies.add(padding());
      await sweepUnfinishedWork(ctx);
    }
    t.not((await leftOf(made)).length, 0, 'it goes on');
    world.clock.advance(HOUR);
    await sweepUnfinishedWork(ctx);
    t.strictSame(await leftOf(made), []);
    t.strictSame(await ctx.store.range('leftovers'), []);
    await t.rejects(
      (async () => {
        for (let n = 0; n < 3_000; n++) await dies.add(padding());
      })(),
      { code: 'internal', message: /removed in the meantime/ },
      'it notices when it was only slow',
    );
    await dies.abandon();
    t.strictSame(await leftOf(made), []);
  },
);

t.test('an import that fails leaves nothing', async (t) => {
  const made = await scene(t);
  const { ctx, world } = made;
  const lines = await exported(ctx, world);
  await deleteEnvironment(ctx, world.environment.id);
  const fails = new Import(ctx, { skipExisting: false });
  for (const line of lines.slice(0, -1)) await fails.add(line);
  await t.rejects(fails.add('{"type":"end","lines":1}'), { code: 'invalid_request' });
  await fails.abandon();
  t.strictSame([await leftOf(made), await ctx.store.range('leftovers')], [[], []]);
  await t.resolves(createEnvironment(ctx, { slug: 'dev' }));
});
