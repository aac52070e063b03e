import { setTimeout as delay } from 'node:timers/promises';
import { type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import { fillEnvironments } from '../lib/environments.ts';
import { asTarget, startNodes, withEngines } from '../lib/nodes.ts';
import type { Plan } from '../lib/plan.ts';
import { busyMs } from '../lib/processes.ts';
import { untilIdle, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import { type Sink, startSink } from '../lib/sink.ts';
import { openSockets } from '../lib/sockets.ts';

/** What three nodes without requests cost, each with a few sockets, and with a hundred environments in the store. */
export function clusterIdleCase(plan: Plan): Promise<CaseResult> {
  return withEngines(async (engines) => {
    const database = newRow('PostgreSQL', '% of a core', 2);
    const memory = newRow('Redis', '% of a core', 2);
    const servers = newRow('three nodes together', '% of a core', 2);
    for (const withRedis of [false, true]) {
      const name = withRedis ? 'collab, Redis' : 'collab';
      const nodes = await startNodes(engines, { bin: plan.bin, name, count: 3, withRedis });
      const target = asTarget(nodes);
      const sinks: Sink[] = [];
      try {
        await withTargets([target], async () => {
          await fillEnvironments(nodes.database, plan.idleEnvironments);
          await seedUsers(target, 50);
          await seedThreads(target, 10, 1);
          for (const node of nodes.all) {
            const sink = startSink(name);
            sinks.push(sink);
            await openSockets(sink, node, 20);
          }
          await untilIdle([target]);
          const groups = [
            [database, engines.postgres],
            [memory, engines.redis],
            [servers, target.server],
          ] as const;
          const before = groups.map(([, group]) => busyMs(group.pids()));
          const begun = performance.now();
          await delay(plan.idleSeconds * 1_000);
          const milliseconds = performance.now() - begun;
          for (const [at, [row, group]] of groups.entries())
            record(row, name, ((busyMs(group.pids()) - (before[at] ?? 0)) / milliseconds) * 100);
        });
      } finally {
        for (const sink of sinks) await sink.end();
      }
    }
    return {
      name: 'cluster-idle',
      title: `three idle nodes, ${plan.idleEnvironments} environments`,
      rows: [database, memory, servers],
      goals: [
        ceilingGoal(database, 1),
        { ...ceilingGoal(database, 1, 'collab, Redis'), label: 'PostgreSQL, with Redis' },
      ],
    };
  });
}
