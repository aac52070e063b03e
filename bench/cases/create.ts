import { installCollab, startBuilds, startCollab, startOnNodeCore } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, newRow, ratioGoal, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { ProcessorTimeRows } from '../lib/processor-time-rows.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { Target } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

/** Creates comments: 64 connections, 500 threads, on disk before the 201. */
export async function createCase(plan: Plan): Promise<CaseResult> {
  const targets: Target[] = await startBuilds(plan);
  if (plan.before === null)
    targets.push(
      await startCollab(installCollab(plan.bin), 2),
      await startOnNodeCore(plan),
      await startBareUws(),
      await startFastify(),
    );
  const cost = new ProcessorTimeRows('comment');
  const perSecond = newRow('comments created', '1/s', 0);
  const p50 = newRow('answer, median', 'ms', 2);
  const p99 = newRow('answer, 99 of 100', 'ms', 2);
  const busy = newRow('core of the server busy', '%', 0);

  await withTargets(targets, async () => {
    const files = new Map<Target, string>();
    for (const target of targets) files.set(target, threadsFile(await threadsOf(target)));
    await interleave(plan.rounds, targets, async (target) => {
      await cost.measure(target, async () => {
        // While the other servers ran, V8 has discarded the compiled code of this one, because no request was under
        // way.
        const warmUp = await runWrk('create', target, files.get(target)!, plan.warmUpSeconds);
        const run = await runWrk('create', target, files.get(target)!, plan.seconds);
        record(perSecond, target.name, run.perSecond);
        record(p50, target.name, run.p50Ms);
        record(p99, target.name, run.p99Ms);
        record(busy, target.name, run.serverBusy);
        return warmUp.requests + run.requests;
      });
    });
  });

  return {
    name: 'create',
    title: 'create comment, durable',
    rows: [...cost.rows, perSecond, p50, p99, busy],
    goals:
      plan.before === null
        ? [ratioGoal(perSecond, 'bare uWS', 0.22), ratioGoal(perSecond, 'Fastify + SQLite', 7)]
        : [beforeGoal(cost.total), beforeGoal(perSecond)],
  };
}

/** 500 thread ids; the bare server accepts any. */
async function threadsOf(target: Target): Promise<string[]> {
  if (target.name === 'bare uWS')
    return Array.from({ length: 500 }, (_, i) => `th_0123456789abcdef${String(i).padStart(4, '0')}`);
  await seedUsers(target, 50);
  return seedThreads(target, 500, 1);
}
