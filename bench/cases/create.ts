import { installCollab, startBuilds, startCollab, startOnNodeCore } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, ratioGoal } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { Rates } from '../lib/rates.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { Target } from '../lib/target.ts';
import { threadsFile } from '../lib/wrk.ts';

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
  const rates = new Rates('create', 'comment', 'comments created');

  await withTargets(targets, async () => {
    const files = new Map<Target, string>();
    for (const target of targets) files.set(target, threadsFile(await threadsOf(target)));
    await interleave(plan.rounds, targets, (target) => rates.measure(plan, target, files.get(target)!));
  });

  return {
    name: 'create',
    title: 'create comment, durable',
    rows: rates.rows,
    goals:
      plan.before === null
        ? [ratioGoal(rates.perSecond, 'bare uWS', 0.22), ratioGoal(rates.perSecond, 'Fastify + SQLite', 7)]
        : [beforeGoal(rates.cost.total), beforeGoal(rates.perSecond)],
  };
}

/** 500 thread ids; the bare server accepts any. */
async function threadsOf(target: Target): Promise<string[]> {
  if (target.name === 'bare uWS')
    return Array.from({ length: 500 }, (_, i) => `th_0123456789abcdef${String(i).padStart(4, '0')}`);
  await seedUsers(target, 50);
  return seedThreads(target, 500, 1);
}
