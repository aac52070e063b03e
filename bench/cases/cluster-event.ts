import { installCollab, startCollab } from '../lib/collab.ts';
import { type CaseResult, ceilingGoal, median, newRow, record } from '../lib/measure.ts';
import { asTarget, startNodes, withEngines } from '../lib/nodes.ts';
import type { Plan } from '../lib/plan.ts';
import { inRound, untilIdle, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import { type Sink, startSink } from '../lib/sink.ts';
import { openSockets } from '../lib/sockets.ts';
import type { Target } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

const SOCKETS = 1_000;
const SINGLES_PER_ROUND = 15;

/**
 * One event from its POST to the last of 1 000 sockets: on one machine with a folder, and posted to another node than
 * that of the sockets, whose messages go over PostgreSQL, or over Redis.
 */
export function clusterEventCase(plan: Plan): Promise<CaseResult> {
  return withEngines(async (engines) => {
    const last = newRow('one event, POST to the last of 1 000 sockets', 'ms', 2);
    const more = newRow('more than on one machine', 'ms', 2);
    const folder = await startCollab(installCollab(plan.bin), 'auto', 'collab, folder');
    const onPostgres = await startNodes(engines, { bin: plan.bin, name: 'collab', count: 2 });
    const onRedis = await startNodes(engines, { bin: plan.bin, name: 'collab, Redis', count: 2, withRedis: true });
    /** The server, and where its sockets are. */
    const doors = new Map<Target, Target>([[folder, folder]]);
    for (const nodes of [onPostgres, onRedis]) doors.set(asTarget(nodes), nodes.all.at(-1)!);
    const targets = [...doors.keys()];
    const sinks = new Map<Target, Sink>();
    const threads = new Map<Target, string>();
    const post = async (target: Target): Promise<number> => {
      const request = target.eventRequest(threads.get(target)!, '');
      const result = await sinks.get(target)!.burst(target.server.port, [request]);
      if (result.incomplete > 0 || result.refused > 0)
        throw new Error(
          `${target.name}: ${result.incomplete} sockets missed an event, ${result.refused} posts refused`,
        );
      return result.milliseconds;
    };
    try {
      await withTargets(targets, async () => {
        for (const target of targets) {
          await seedUsers(target, SOCKETS / 20);
          const ids = await seedThreads(target, 100, 1);
          threads.set(target, ids[0]!);
          await runWrk('create', target, threadsFile(ids), plan.warmUpSeconds);
          const sink = startSink(target.name);
          sinks.set(target, sink);
          await openSockets(sink, doors.get(target)!, SOCKETS);
        }
        // Single events leave nothing to do afterwards, so it is waited for only once.
        await untilIdle(targets);
        for (let round = 0; round < plan.rounds; round += 1) {
          for (const target of inRound(targets, round)) {
            const times: number[] = [];
            // The first ones find code that V8 has discarded.
            for (let n = 0; n < 2 * SINGLES_PER_ROUND; n += 1) times.push(await post(target));
            record(last, target.name, median(times.slice(SINGLES_PER_ROUND)));
          }
        }
      });
    } finally {
      for (const sink of sinks.values()) await sink.end();
    }
    for (const name of ['collab', 'collab, Redis'] as const)
      for (const [round, milliseconds] of (last.runs.get(name) ?? []).entries())
        record(more, name, milliseconds - (last.runs.get('collab, folder')?.[round] ?? NaN));
    return {
      name: 'cluster-event',
      title: 'one event to sockets of another node',
      rows: [last, more],
      goals: [ceilingGoal(more, 10), { ...ceilingGoal(more, 10, 'collab, Redis'), label: `${more.label}, Redis` }],
    };
  });
}
