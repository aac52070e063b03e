import { type Collab, type Installation, installCollab, startCollab } from '../lib/collab.ts';
import { type CaseResult, newRow, pairedGoal, record } from '../lib/measure.ts';
import { addWebhook, configurePlugins, type Receiver, startReceiver, writePlugin } from '../lib/plugins.ts';
import type { Plan } from '../lib/plan.ts';
import { inRound, untilIdle, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import type { TargetName } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

const ACTIONS = ['first', 'second', 'third'];

/** Prepares an installation: which plugins it has. */
const setups: readonly {
  readonly name: TargetName;
  readonly prepare: (installation: Installation, receiver: Receiver) => void;
}[] = [
  { name: 'collab', prepare: () => {} },
  {
    name: 'collab, 1 filter',
    prepare: (installation) =>
      configurePlugins(installation, [
        { use: writePlugin(installation, 'trivial', "host.filter('comment.create', () => undefined);") },
      ]),
  },
  {
    name: 'collab, 3 actions, webhook',
    prepare: (installation, receiver) => {
      const actions = ACTIONS.map((name) => ({
        use: writePlugin(installation, name, "let events = 0; host.action('*', () => { events++; });"),
      }));
      configurePlugins(installation, [...actions, { use: 'webhook', allowPrivate: true }]);
      addWebhook(installation, receiver.url, 'comment.created');
    },
  },
];

/**
 * Creates comments as the case `create` does, without plugins, with one filter, and with three action plugins and a
 * webhook for every comment. Each run has a server of its own: what actions and deliveries are behind must not slow the
 * run of another.
 */
export async function pluginsCase(plan: Plan): Promise<CaseResult> {
  const perSecond = newRow('comments created', '1/s', 0);
  const busy = newRow('core of the server busy', '%', 0);
  const receiver = await startReceiver();
  try {
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const { name, prepare } of inRound(setups, round)) {
        const installation = installCollab(plan.bin);
        prepare(installation, receiver);
        const collab = await startCollab(installation, 'auto', name);
        const run = await measure(collab, plan);
        record(perSecond, name, run.perSecond);
        record(busy, name, run.serverBusy);
      }
    }
  } finally {
    receiver.close();
  }
  return {
    name: 'plugins',
    title: 'create comment with plugins',
    rows: [perSecond, busy],
    goals: [
      pairedGoal(perSecond, 'collab, 3 actions, webhook', 'collab', 0.9),
      pairedGoal(perSecond, 'collab, 1 filter', 'collab', 0.85),
    ],
  };
}

async function measure(collab: Collab, plan: Plan): ReturnType<typeof runWrk> {
  return withTargets([collab], async () => {
    await seedUsers(collab, 50);
    const threads = threadsFile(await seedThreads(collab, 500, 1));
    await runWrk('create', collab, threads, plan.warmUpSeconds);
    await untilIdle([collab]);
    return runWrk('create', collab, threads, plan.seconds);
  });
}
