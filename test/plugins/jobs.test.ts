import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { endAttempt, leaseJobs, sweepDeadJobs } from '../../src/domain/plugins/job-attempts.ts';
import { diskFailed } from '../../src/model/disk-refusal.ts';
import { createLogger } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { Job, PluginEnvironment, Queue } from '../../src/plugins/api.ts';
import { HookMeter } from '../../src/plugins/thread/hook-meter.ts';
import type { PluginServices } from '../../src/plugins/services/services.ts';
import { localServices } from '../../src/plugins/services/local-services.ts';
import { PluginThread, reportEnds } from '../../src/plugins/thread/plugin-thread.ts';
import { QueueRunner } from '../../src/plugins/queues/queue-runner.ts';
import { createWorld, type World } from '../domain/world.ts';
import { until } from '../helpers/cluster.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const use = fileURLToPath(new URL('../fixtures/plugins/jobs.mjs', import.meta.url));
const DAY_MS = 24 * 3_600_000;

interface Jobs extends World {
  readonly folder: string;
  readonly thread: PluginThread;
  readonly runner: QueueRunner;
  readonly queue: Queue;
  readonly at: PluginEnvironment;
  readonly metrics: Metrics;
  /** The lines of the log of level info and above. */
  readonly lines: Record<string, unknown>[];
  /** Adds a job with this id, whose payload is the id unless one is given. */
  add(id: string, payload?: string): Promise<void>;
  /** Advances the clock, begins what is due, and returns the job once `holds`; undefined once it is gone. */
  runUntil(id: string, afterMs: number, holds: (job: Job | undefined) => boolean): Promise<Job | undefined>;
}

/**
 * The queue of the plugin `jobs` in a real thread, with a clock that the test advances. With `beginsAtOnce`, as in the
 * process that runs the jobs. `put` is that of `kv`.
 */
async function startJobs(
  t: Test,
  options: {
    readonly beginsAtOnce?: boolean;
    readonly rememberedGroups?: number;
    readonly put?: () => Promise<void>;
    /** Jobs have a minute instead of two seconds. */
    readonly isPatient?: boolean;
  } = {},
): Promise<Jobs> {
  const world = await createWorld(t);
  const folder = tempFolder(t);
  const lines: Record<string, unknown>[] = [];
  const { rememberedGroups } = options;
  const log = createLogger({
    level: 'info',
    name: 'background',
    destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const metrics = new Metrics();
  const entry = { use, config: { folder } };
  const starterOf = (): QueueRunner | undefined => (options.beginsAtOnce === true ? runner : undefined);
  const services = (plugin: string): PluginServices => {
    const local = localServices(plugin, entry, {
      ctx: world.ctx,
      config: { publicUrl: '' },
      log,
      passes: () => Promise.resolve(true),
      starterOf,
    });
    const { put } = options;
    return put === undefined ? local : { ...local, kv: (environment) => Object.assign(local.kv(environment), { put }) };
  };
  const thread = new PluginThread(entry, { publicUrl: '', services, onEnd: reportEnds(log, metrics) });
  const info = await thread.start();
  const runner: QueueRunner = new QueueRunner(
    {
      ctx: world.ctx,
      log,
      info,
      thread,
      meter: new HookMeter(info.name, metrics),
      ...(rememberedGroups === undefined ? {} : { rememberedGroups }),
    },
    options.isPatient === true ? 1 : 0,
  );
  t.teardown(async () => {
    await runner.stop();
    await thread.stop();
  });
  const queue = services('jobs').queue(options.isPatient === true ? 'patient' : 'work');
  const at = { id: world.environment.id, slug: world.environment.slug };
  return {
    ...world,
    folder,
    thread,
    runner,
    queue,
    at,
    metrics,
    lines,
    add: (id, payload = id) => queue.add(at, [{ id, payload }]),
    runUntil: async (id, afterMs, holds) => {
      world.clock.advance(afterMs);
      runner.poll();
      let job: Job | undefined;
      await until(async () => holds((job = await queue.get(at, id))));
      return job;
    },
  };
}

const dueIn = (job: Job | undefined, { clock }: World): number => Date.parse(job?.dueAt ?? '') - clock.now();
/** Whether this many attempts have ended in a failure. */
const failed =
  (attempts: number, message: string) =>
  (job: Job | undefined): boolean =>
    job?.attempts === attempts && job.lastError === message;

t.test('jobs of a plugin in its thread', async (t) => {
  const jobs = await startJobs(t);
  const { add, runUntil, queue, at, metrics } = jobs;

  await t.test('a job that succeeds is gone', async () => {
    await add('fine');
    await runUntil('fine', 0, (job) => job === undefined);
  });

  await t.test('RetryAfter says when the next attempt is', async (t) => {
    await add('later');
    const job = await runUntil('later', 0, failed(1, 'busy'));
    t.match(job, { state: 'waiting' });
    t.equal(dueIn(job, jobs), 90_000);
    await queue.remove(at, 'later');
  });

  await t.test('Permanent ends a job at once', async (t) => {
    await add('never');
    t.match(await runUntil('never', 0, failed(1, 'gone')), { state: 'dead' });
  });

  await t.test('a job that fails waits as its queue says, and is dead after the last attempt', async (t) => {
    await add('fail');
    for (const [attempt, delay] of [
      [1, 1_000],
      [2, 60_000],
    ] as const) {
      const job = await runUntil('fail', attempt === 1 ? 0 : 1_100, failed(attempt, `attempt ${attempt} failed`));
      t.equal(job?.state, 'waiting');
      t.ok(dueIn(job, jobs) >= delay * 0.9 && dueIn(job, jobs) <= delay * 1.1, `due in ${dueIn(job, jobs)} ms`);
    }
    t.match(await runUntil('fail', 66_000, failed(3, 'attempt 3 failed')), { state: 'dead' });
  });

  await t.test('a job that hangs fails at its deadline, with its signal aborted', async (t) => {
    await add('hang');
    t.match(await runUntil('hang', 0, failed(1, 'did not end within 2000 ms')), { state: 'waiting' });
    await until(() => existsSync(join(jobs.folder, 'hang.aborted')));
    await queue.remove(at, 'hang');
  });

  await t.test('a job that ends its thread has failed, and is tried again', async (t) => {
    await add('exit', 'exit once');
    t.match(await runUntil('exit', 0, failed(1, 'ended its thread')), { state: 'waiting' });
    await runUntil('exit', 1_100, (job) => job === undefined);
    t.ok(existsSync(join(jobs.folder, 'exit')), 'it has ended the thread before');
    const { counters } = metrics.takeReport();
    t.equal(Object.entries(counters).find(([series]) => series.startsWith('plugin_restarts_total'))?.[1], 1);
  });

  await t.test('dead jobs are deleted after 30 days', async (t) => {
    t.strictSame(await queue.count(at), { waiting: 0, dead: 2 });
    jobs.clock.advance(30 * DAY_MS - 70_000);
    t.equal(await sweepDeadJobs(jobs.ctx), 0);
    jobs.clock.advance(70_001);
    t.equal(await sweepDeadJobs(jobs.ctx), 2);
    t.strictSame(await queue.count(at), { waiting: 0, dead: 0 });
  });

  await t.test('a failure is logged at once, and those within a minute after it at the level debug', async (t) => {
    jobs.clock.advance(60_000);
    jobs.lines.length = 0;
    for (const id of ['fail-a', 'fail-b']) {
      await add(id, 'fail');
      await runUntil(id, 0, failed(1, 'attempt 1 failed'));
    }
    t.match(jobs.lines, [
      { level: 'warn', plugin: 'jobs', queue: 'work', job: 'fail-a', attempt: 1, reason: 'attempt 1 failed' },
    ]);
    t.equal(jobs.lines.length, 1);
    for (const id of ['fail-a', 'fail-b']) await queue.remove(at, id);
  });
});

for (const [payload, reason] of [
  ['exit', 'ended its thread'],
  ['loop', 'did not end within 2000 ms'],
  ['throw later', 'did not end within 2000 ms'],
] as const) {
  t.test(
    `a job that always does "${payload}" is dead after its attempts, and those that run beside it succeed`,
    async (t) => {
      const jobs = await startJobs(t);
      const { runUntil, queue, at } = jobs;
      await queue.add(at, [
        { id: 'beside', payload: 'short' },
        { id: 'bad', payload },
        { id: 'after', payload: 'short' },
      ]);
      await runUntil('bad', 0, failed(1, reason));
      // The others leave the queue only when they succeed; the clock stands still, so a failed one would go on waiting.
      await until(async () => (await queue.count(at)).waiting === 1);
      // Its error does not show whether the attempt has ended, but it is due later than a lease ends.
      await runUntil('bad', 1_100, (job) => failed(2, reason)(job) && dueIn(job, jobs) > 30_000);
      t.match(await runUntil('bad', 66_000, (job) => job?.state === 'dead'), { attempts: 3, lastError: reason });
    },
  );
}

t.test(
  'a job that another process was running when it was killed runs at once, and one that waits for its retry does not',
  async (t) => {
    const { add, runUntil, ctx, queue, at, folder, clock } = await startJobs(t, { isPatient: true });
    const address = { environmentId: at.id, plugin: 'jobs', queue: 'patient' };
    for (const id of ['fine', 'ahead', 'retried']) await add(id);
    // By a machine whose clock is ten minutes ahead.
    const now = clock.now();
    clock.set(now + 600_000);
    await leaseJobs(ctx, address, ['ahead'], 12_000);
    clock.set(now);
    for (const id of ['fine', 'retried'])
      for (const job of await leaseJobs(ctx, address, [id], 12_000))
        if (id === 'retried') await endAttempt(ctx, address, job, { error: 'x', waitMs: 5_000 });
    await runUntil('fine', 0, (job) => job === undefined);
    await runUntil('ahead', 0, (job) => job === undefined);
    t.match(await queue.get(at, 'retried'), { attempts: 1, lastError: 'x' });
    t.notOk(existsSync(join(folder, 'retried.runs')));
    // What this process leases itself it does not free.
    await add('running', 'wait');
    await runUntil('running', 0, (job) => job?.attempts === 1);
    await runUntil('running', 0, (job) => job?.attempts === 1);
    writeFileSync(join(folder, 'go on'), '');
    await until(async () => (await queue.get(at, 'running')) === undefined);
    t.equal(readFileSync(join(folder, 'running.runs'), 'utf8'), '.');
  },
);

t.test('jobs of more failing groups than are kept in mind run in turn', async (t) => {
  const { ctx, clock, queue, at, runner } = await startJobs(t, { rememberedGroups: 1 });
  const address = { environmentId: at.id, plugin: 'jobs', queue: 'work' };
  const ids = ['a', 'b', 'c'];
  await queue.add(
    at,
    ids.map((id) => ({ id, payload: id, group: id })),
  );
  for (const id of ids)
    for (const job of await leaseJobs(ctx, address, [id], 12_000))
      await endAttempt(ctx, address, job, { error: 'x', waitMs: 5_000 });
  t.equal((await queue.get(at, 'a'))?.lastError, 'x');
  clock.advance(6_000);
  runner.poll();
  await until(async () => (await queue.count(at)).waiting === 0);
});

t.test('no job begins at once before the leases of earlier processes are freed', async (t) => {
  const { runner, at } = await startJobs(t);
  t.equal(runner.reserve(at, ''), null, 'before the first round');
  runner.poll();
  t.equal(runner.reserve(at, ''), null, 'during it');
  await until(() => {
    const place = runner.reserve(at, '');
    place?.release();
    return place !== null;
  });
});

t.test('a job waits no longer when the clock is set back, and one that runs is not run again', async (t) => {
  const jobs = await startJobs(t, { isPatient: true });
  const { add, runUntil, queue, at, clock, folder } = jobs;
  await add('running', 'wait');
  await runUntil('running', 0, (job) => job?.attempts === 1);
  await queue.add(at, [{ id: 'delayed', payload: 'delayed', delayMs: 60_000 }]);
  clock.advance(1_000);
  clock.set(clock.now() - 3_600_000);
  t.equal(dueIn(await runUntil('delayed', 0, (job) => dueIn(job, jobs) < 60_000), jobs), 59_000);
  await runUntil('delayed', 59_000, (job) => job === undefined);
  writeFileSync(join(folder, 'go on'), '');
  await until(async () => (await queue.get(at, 'running')) === undefined);
  t.equal(readFileSync(join(folder, 'running.runs'), 'utf8'), '.');
});

t.test('jobs that are added in the process that runs them', async (t) => {
  const { add, runUntil, queue, at, folder } = await startJobs(t, { beginsAtOnce: true, isPatient: true });
  await add('first');
  await runUntil('first', 0, (job) => job === undefined);

  await t.test('begin at once', async () => {
    await add('fine');
    await until(async () => (await queue.get(at, 'fine')) === undefined);
  });

  await t.test('run once, also when the id is added several times before the job has ended', async (t) => {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        queue.add(at, [
          { id: 'same', payload: 'wait' },
          { id: 'same', payload: 'wait' },
        ]),
      ),
    );
    writeFileSync(join(folder, 'go on'), '');
    await until(async () => (await queue.count(at)).waiting === 0);
    t.equal(readFileSync(join(folder, 'same.runs'), 'utf8'), '.');
    rmSync(join(folder, 'go on'));
  });

  await t.test('wait while all places are taken, and begin when one is free', async (t) => {
    await queue.add(
      at,
      Array.from({ length: 12 }, (_, n) => ({ id: `wait_${n}`, payload: 'wait' })),
    );
    const begun = async (): Promise<number> =>
      (await queue.list(at, { state: 'waiting' })).filter(({ attempts }) => attempts > 0).length;
    // With the next round, if the runner has not yet noted that the job before has ended.
    await until(async () => (await begun()) === 8);
    await add('behind');
    t.match(await queue.get(at, 'behind'), { attempts: 0 });
    t.equal(await begun(), 8);
    writeFileSync(join(folder, 'go on'), '');
    await until(async () => (await queue.count(at)).waiting === 0);
  });

  await t.test('wait for their delay', async (t) => {
    await queue.add(at, [{ id: 'delayed', payload: 'delayed', delayMs: 5_000 }]);
    t.match(await queue.get(at, 'delayed'), { attempts: 0 });
    await runUntil('delayed', 5_000, (job) => job === undefined);
  });

  await t.test('are tried again as their queue says', async (t) => {
    await add('fail');
    await until(async () => failed(1, 'attempt 1 failed')(await queue.get(at, 'fail')));
    t.match(await runUntil('fail', 1_100, failed(2, 'attempt 2 failed')), { state: 'waiting' });
  });
});

t.test(
  'the deadline of a job does not count the time that the store takes, and a job that the store refuses is tried again without counting',
  async (t) => {
    let release = (): void => {};
    let put = (): Promise<void> => new Promise((resolve) => (release = resolve));
    const jobs = await startJobs(t, { put: () => put() });
    const job = { id: 'slow', payload: 'store', attempts: 0 };
    const context = { environment: jobs.at, config: { folder: jobs.folder }, attempt: 1 };
    const run = (payload: string, timeoutMs: number): Promise<unknown> =>
      jobs.thread.run({ kind: 'job', index: 0 }, { ...job, payload }, context, timeoutMs);
    const stored = run('store', 1_000);
    await t.rejects(run('hang', 1_500), { message: 'did not end within 1500 ms' }, 'the time of another job goes on');
    release();
    await t.resolves(stored);

    put = () => Promise.reject(diskFailed(new Error('EIO')));
    await jobs.add('refused', 'store');
    const refused = await jobs.runUntil('refused', 0, (found) => found?.lastError?.includes('I/O error') === true);
    t.match(refused, { state: 'waiting', attempts: 0 });
    t.equal(dueIn(refused, jobs), 1_000);
  },
);
