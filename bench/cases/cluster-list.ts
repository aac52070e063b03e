import { beforeGoal, type CaseResult, lessTimeGoal, ratioGoal } from '../lib/measure.ts';
import { asTarget, startNodeOfBuilds, withEngines } from '../lib/nodes.ts';
import { startFastifyOnPostgres } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { Rates } from '../lib/rates.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { Target } from '../lib/target.ts';
import { threadsFile } from '../lib/wrk.ts';

const threads = 100;
const comments = 50;

/** Lists 50 comments from PostgreSQL: 64 connections, 100 threads of 50 comments each. */
export function clusterListCase(plan: Plan): Promise<CaseResult> {
  return withEngines(async (engines) => {
    const rates = new Rates('list', 'list', 'lists of 50 on PostgreSQL');
    const targets: Target[] = (await startNodeOfBuilds(engines, plan)).map(asTarget);
    if (plan.before === null) targets.push(await startFastifyOnPostgres(engines.postgres));
    await withTargets(targets, async () => {
      const files = new Map<Target, string>();
      for (const target of targets) {
        await seedUsers(target, 50);
        files.set(target, threadsFile(await seedThreads(target, threads, comments)));
      }
      await interleave(plan.rounds, targets, (target) => rates.measure(plan, target, files.get(target)!));
    });
    return {
      name: 'cluster-list',
      title: 'list 50 comments on PostgreSQL',
      rows: rates.rows,
      goals:
        plan.before === null
          ? [
              ratioGoal(rates.perSecond, 'Fastify + PostgreSQL', 4),
              lessTimeGoal(rates.cost.total, 'Fastify + PostgreSQL', 4),
            ]
          : [beforeGoal(rates.cost.total), beforeGoal(rates.perSecond)],
    };
  });
}
