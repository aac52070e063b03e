import { startBuilds, startOnNodeCore } from '../lib/collab.ts';
import { beforeGoal, type CaseResult, newRow, ratioGoal, record } from '../lib/measure.ts';
import { startBareUws, startFastify } from '../lib/peers.ts';
import type { Plan } from '../lib/plan.ts';
import { ProcessorTimeRows } from '../lib/processor-time-rows.ts';
import { interleave, together, withTargets } from '../lib/rounds.ts';
import { getText, seedThreads, seedUsers } from '../lib/seed.ts';
import type { Target } from '../lib/target.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

const threads = 100;
const comments = 50;

/** Lists 50 comments: 64 connections, 100 threads of 50 comments each; the bare server sends as many static bytes. */
export async function listCase(plan: Plan): Promise<CaseResult> {
  const targets: Target[] = await startBuilds(plan);
  if (plan.before === null) targets.push(await startOnNodeCore(plan), await startFastify());
  const cost = new ProcessorTimeRows('list');
  const perSecond = newRow('lists of 50', '1/s', 0);
  const p50 = newRow('answer, median', 'ms', 2);
  const p99 = newRow('answer, 99 of 100', 'ms', 2);
  const size = newRow('body', 'bytes', 0);
  const busy = newRow('core of the server busy', '%', 0);

  await withTargets(targets, async () => {
    const files = new Map<Target, string>();
    for (const target of targets) {
      await seedUsers(target, 50);
      const ids = await seedThreads(target, threads, comments);
      record(size, target.name, await bytesOfList(target, ids[0]!));
      files.set(target, threadsFile(ids));
    }
    if (plan.before === null) {
      const bytes = size.runs.get('collab')![0]!;
      const bare = await startBareUws(bytes);
      files.set(bare, files.get(targets[0]!)!);
      targets.splice(1, 0, bare);
      record(size, 'bare uWS', bytes);
    }

    for (const target of targets) await runWrk('list', target, files.get(target)!, plan.warmUpSeconds);
    const inRounds = plan.before === null ? interleave : together;
    await inRounds(plan.rounds, targets, async (target) => {
      await cost.measure(target, async () => {
        const run = await runWrk('list', target, files.get(target)!, plan.seconds);
        record(perSecond, target.name, run.perSecond);
        record(p50, target.name, run.p50Ms);
        record(p99, target.name, run.p99Ms);
        record(busy, target.name, run.serverBusy);
        return run.requests;
      });
    });
  });

  return {
    name: 'list',
    title: 'list 50 comments',
    rows: [...cost.rows, perSecond, p50, p99, size, busy],
    goals:
      plan.before === null
        ? [ratioGoal(perSecond, 'bare uWS', 0.5), ratioGoal(perSecond, 'Fastify + SQLite', 5)]
        : [beforeGoal(cost.total), beforeGoal(perSecond)],
  };
}

/** Returns the size of the response, after checking its contents. */
async function bytesOfList(target: Target, threadId: string): Promise<number> {
  const text = await getText(target, `/api/v1/threads/${threadId}/comments`);
  const { items } = JSON.parse(text) as { items: unknown[] };
  if (items.length !== comments)
    throw new Error(`${target.name} lists ${items.length} comments instead of ${comments}`);
  return Buffer.byteLength(text);
}
