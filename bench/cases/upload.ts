import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startBuilds } from '../lib/collab.ts';
import { startBareFiles } from '../lib/file-peers.ts';
import { newFolder } from '../lib/folders.ts';
import { makeImages } from '../lib/images.ts';
import { beforeGoal, type CaseResult, newRow, ratioGoal, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { ProcessorTimeRows } from '../lib/processor-time-rows.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import type { Target } from '../lib/target.ts';
import { runUploads, thumbnailsMade, uploadsFile } from '../lib/uploads.ts';

/** A run writes a gigabyte and leaves thumbnails for seconds; a longer one would only fill the disk. */
const seconds = 1;

/** Uploads JPEGs of 1 MiB over 8 connections, on disk before the response. */
export async function uploadCase(plan: Plan): Promise<CaseResult> {
  const data = newFolder('bare-files');
  const builds = await startBuilds(plan);
  const targets: Target[] = [...builds];
  if (plan.before === null) targets.push(await startBareFiles(data));
  const uploads = uploadsFile(await makeImages(8, { width: 2400, height: 1800, bytes: 1024 * 1024 }));
  const cost = new ProcessorTimeRows('image');
  const perSecond = newRow('images of 1 MiB uploaded', '1/s', 0);
  const p50 = newRow('answer, median', 'ms', 1);
  const p99 = newRow('answer, 99 of 100', 'ms', 1);
  const busy = newRow('core of the server busy', '%', 0);

  await withTargets(targets, async () => {
    // The work that a run leaves behind is done or deleted before the next one starts.
    const settle = async (): Promise<void> => {
      for (const { dir } of builds) await thumbnailsMade(dir);
      for (const file of readdirSync(data)) rmSync(join(data, file));
    };
    for (const target of targets) await runUploads(target, uploads, plan.warmUpSeconds);
    await settle();
    await interleave(plan.rounds, targets, async (target) => {
      await cost.measure(target, async () => {
        const run = await runUploads(target, uploads, seconds);
        record(perSecond, target.name, run.perSecond);
        record(p50, target.name, run.p50Ms);
        record(p99, target.name, run.p99Ms);
        record(busy, target.name, run.serverBusy);
        await settle();
        return run.requests;
      });
    });
  });
  for (const { dir } of builds) rmSync(dir, { recursive: true });

  return {
    name: 'upload',
    title: 'upload a JPEG of 1 MiB, durable',
    rows: [...cost.rows, perSecond, p50, p99, busy],
    goals:
      plan.before === null ? [ratioGoal(perSecond, 'bare uWS', 0.5)] : [beforeGoal(cost.total), beforeGoal(perSecond)],
  };
}
