import { beforeGoal, type CaseResult, lessTimeGoal, pairedGoal, ratioGoal } from '../lib/measure.ts';
import { asTarget, startNodeOfBuilds, startNodes, withEngines } from '../lib/nodes.ts';
import { startFastifyOnPostgres } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { Rates } from '../lib/rates.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { Target } from '../lib/target.ts';
import { threadsFile } from '../lib/wrk.ts';

/** The peer that does the same as Collab: every comment notifies the other user of its thread. */
const PEER = 'Fastify + PostgreSQL, notifications';

/** Creates comments on PostgreSQL: 64 connections, 500 threads, committed before the 201. */
export function clusterCreateCase(plan: Plan): Promise<CaseResult> {
  return withEngines(async (engines) => {
    const rates = new Rates('create', 'comment', 'comments created on PostgreSQL');
    const nodes = await startNodeOfBuilds(engines, plan);
    if (plan.before === null)
      nodes.push(
        await startNodes(engines, { bin: plan.bin, name: 'collab, Redis', withRedis: true }),
        await startNodes(engines, { bin: plan.bin, name: 'collab, 2 nodes', count: 2 }),
      );
    const doors = new Map<Target, readonly Target[]>(nodes.map((each) => [asTarget(each), each.all]));
    if (plan.before === null) {
      for (const withNotifications of [true, false]) {
        const peer = await startFastifyOnPostgres(engines.postgres, withNotifications);
        doors.set(peer, [peer]);
      }
    }
    const targets = [...doors.keys()];
    await withTargets(targets, async () => {
      const files = new Map<Target, string>();
      for (const target of targets) {
        await seedUsers(target, 50);
        files.set(target, threadsFile(await seedThreads(target, 500, 1)));
      }
      await interleave(plan.rounds, targets, (target) =>
        rates.measure(plan, target, files.get(target)!, doors.get(target)),
      );
    });
    return {
      name: 'cluster-create',
      title: 'create comment on PostgreSQL',
      rows: rates.rows,
      goals:
        plan.before === null
          ? [
              ratioGoal(rates.perSecond, PEER, 4),
              lessTimeGoal(rates.cost.total, PEER, 4),
              pairedGoal(rates.perSecond, 'collab, 2 nodes', 'collab', 1),
            ]
          : [beforeGoal(rates.cost.total), beforeGoal(rates.perSecond)],
    };
  });
}
