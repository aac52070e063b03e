import { fillBacklog } from '../lib/backlog.ts';
import { type Installation, installCollab, startCollab } from '../lib/collab.ts';
import { type CaseResult, newRow, pairedGoal, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { addWebhook, configurePlugins, type Receiver, startReceiver } from '../lib/plugins.ts';
import { inRound, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { TargetName } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

/**
 * The start, and the creation of comments, with a million unread notifications and 100 000 webhook deliveries that are
 * due to an endpoint that answers 503, and without them.
 */
export async function backlogCase(plan: Plan): Promise<CaseResult> {
  const starts = newRow('starts to the first 200 of /readyz per second', '1/s', 2);
  const perSecond = newRow('comments created', '1/s', 0);
  const receiver = await startReceiver(503);
  try {
    const empty = prepare(plan, receiver);
    const full = prepare(plan, receiver);
    await fillBacklog(full.installation, full.endpointId, plan.backlog);
    const setups: readonly { readonly name: TargetName; readonly installation: Installation }[] = [
      { name: 'collab', installation: empty.installation },
      { name: 'collab, backlog', installation: full.installation },
    ];
    const threads = new Map<TargetName, string>();
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const { name, installation } of inRound(setups, round)) {
        const collab = await startCollab(installation, 'auto', name);
        record(starts, name, 1_000 / collab.server.readyMs);
        await withTargets([collab], async () => {
          if (!threads.has(name)) {
            await seedUsers(collab, 50);
            threads.set(name, threadsFile(await seedThreads(collab, 500, 1)));
          }
          await runWrk('create', collab, threads.get(name)!, plan.warmUpSeconds);
          record(perSecond, name, (await runWrk('create', collab, threads.get(name)!, plan.seconds)).perSecond);
        });
      }
    }
  } finally {
    receiver.close();
  }
  return {
    name: 'backlog',
    title: `${plan.backlog.notifications} unread notifications and ${plan.backlog.deliveries} waiting deliveries`,
    rows: [starts, perSecond],
    goals: [
      pairedGoal(starts, 'collab, backlog', 'collab', 0.9),
      pairedGoal(perSecond, 'collab, backlog', 'collab', 0.9),
    ],
  };
}

/** An installation with an endpoint for events that the load does not cause. */
function prepare({ bin }: Plan, receiver: Receiver): { installation: Installation; endpointId: string } {
  const installation = installCollab(bin);
  configurePlugins(installation, [{ use: 'webhook', allowPrivate: true }]);
  return { installation, endpointId: addWebhook(installation, receiver.url, 'thread.deleted') };
}
