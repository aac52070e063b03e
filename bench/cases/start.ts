import { installCollab, startCollab } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, ceilingGoal, newRow, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import type { Target } from '../lib/target.ts';
import { until } from '../lib/wait.ts';
import { inRound } from '../lib/rounds.ts';

/** Start to ready with two workers: from the spawn to the first 200 of /readyz, and to the line on standard output. */
export async function startCase(plan: Plan): Promise<CaseResult> {
  const ready = newRow('start to the first 200 of /readyz', 'ms', 0);
  const line = newRow('start to the ready line', 'ms', 0);
  const installation = installCollab(plan.bin);
  const before = plan.before === null ? null : installCollab(plan.before);
  const peers: (() => Promise<Target>)[] =
    before === null ? [() => startBareUws(), startFastify] : [() => startCollab(before, 2, 'collab before')];
  const starts = [() => startCollab(installation, 2), ...peers];

  for (let round = 0; round < plan.startRounds; round += 1) {
    for (const start of inRound(starts, round)) {
      const { name, server } = await start();
      record(ready, name, server.readyMs);
      await until(`${name}: the ready line`, 5000, () => server.readyLineMs() !== null);
      record(line, name, server.readyLineMs()!);
      await server.stop();
    }
  }
  const measured = 'collab, 2 workers';
  const goals =
    before === null
      ? [ceilingGoal(ready, 1000, measured), ceilingGoal(line, 1000, measured)]
      : [beforeGoal(ready, measured), beforeGoal(line, measured)];
  return { name: 'start', title: 'start to ready, 2 workers', rows: [ready, line], goals };
}
