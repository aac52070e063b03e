/** Measures Collab and its peers in one run. README.md explains the output. */
import { cpus } from 'node:os';
import { backlogCase } from './cases/backlog.ts';
import { burstCase } from './cases/burst.ts';
import { clusterCreateCase } from './cases/cluster-create.ts';
import { clusterEventCase } from './cases/cluster-event.ts';
import { clusterIdleCase } from './cases/cluster-idle.ts';
import { clusterListCase } from './cases/cluster-list.ts';
import { createCase } from './cases/create.ts';
import { growthCase } from './cases/growth.ts';
import { listCase } from './cases/list.ts';
import { memoryCase } from './cases/memory.ts';
import { mixedCase } from './cases/mixed.ts';
import { paintCase } from './cases/paint.ts';
import { panelCase } from './cases/panel.ts';
import { reconnectsCase } from './cases/reconnects.ts';
import { serveCase } from './cases/serve.ts';
import { startCase } from './cases/start.ts';
import { thumbnailsCase } from './cases/thumbnails.ts';
import { uploadCase } from './cases/upload.ts';
import { pluginsCase } from './cases/plugins.ts';
import { webhooksCase } from './cases/webhooks.ts';
import { buildAll } from './lib/build.ts';
import { stayOnLoadCore } from './lib/cores.ts';
import { useDataRoot } from './lib/folders.ts';
import type { CaseResult, Observed } from './lib/measure.ts';
import { disturbing, watchNeighbours } from './lib/neighbours.ts';
import { type CaseName, type Plan, readPlan, usage } from './lib/plan.ts';
import { caseTables, goalTable, saveResults } from './lib/report.ts';
import { requireTools } from './lib/wrk.ts';

const cases: Record<CaseName, (plan: Plan) => Promise<CaseResult>> = {
  create: createCase,
  list: listCase,
  burst: burstCase,
  memory: memoryCase,
  start: startCase,
  upload: uploadCase,
  serve: serveCase,
  thumbnails: thumbnailsCase,
  mixed: mixedCase,
  plugins: pluginsCase,
  webhooks: webhooksCase,
  backlog: backlogCase,
  panel: panelCase,
  paint: paintCase,
  growth: growthCase,
  reconnects: reconnectsCase,
  'cluster-create': clusterCreateCase,
  'cluster-list': clusterListCase,
  'cluster-event': clusterEventCase,
  'cluster-idle': clusterIdleCase,
};

async function main(): Promise<void> {
  const plan = planOrUsage();
  if (cpus().length < 2) throw new Error('two cores are needed: one for the server, one for the load');
  requireTools();
  stayOnLoadCore();
  useDataRoot(plan.data ?? undefined);
  await buildAll();

  const results: Observed[] = [];
  for (const name of plan.cases) {
    const started = performance.now();
    const neighbours = watchNeighbours();
    try {
      const result = await cases[name](plan);
      const share = neighbours.share();
      results.push({ ...result, neighboursPercent: share });
      console.log(caseTables(result));
      if (share > disturbing)
        console.log(
          `**Disturbed**: other processes used ${share.toFixed(0)} % of the machine. Measure again on a quiet one.\n`,
        );
    } catch (error) {
      process.exitCode = 1;
      console.error(`${name} could not be measured: ${error instanceof Error ? error.message : String(error)}`);
    }
    console.error(`(${name} took ${((performance.now() - started) / 1000).toFixed(0)} s)\n`);
  }
  console.log(goalTable(results));
  console.error(`Every run is in ${saveResults(plan, results)}`);
}

/** Parses the arguments; exits with 2 and the usage if they are invalid. */
function planOrUsage(): Plan {
  try {
    return readPlan(process.argv.slice(2));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    process.exit(2);
  }
}

process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
