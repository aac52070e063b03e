import { rmSync } from 'node:fs';
import { type Collab, startBuilds } from '../lib/collab.ts';
import { makeImages } from '../lib/images.ts';
import { beforeGoal, type CaseResult, medianOf, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { inRound, withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import { keptFiles, runUploads, thumbnailsMade, uploadsFile } from '../lib/uploads.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

const seconds = 1;
/** The uploads start this long before the comments and end this long after them, so that they overlap the whole run. */
const marginSeconds = 0.5;
const bound = 0.5;

/**
 * Creates comments while uploads and thumbnails run as fast as they can on the same core, compared with creating
 * comments alone.
 */
export async function mixedCase(plan: Plan): Promise<CaseResult> {
  const builds = await startBuilds(plan);
  const uploads = uploadsFile(await makeImages(8, { width: 2400, height: 1800, bytes: 1024 * 1024 }));
  const alone = newRow('comments created, undisturbed', '1/s', 0);
  const disturbed = newRow('comments created beside uploads and thumbnails', '1/s', 0);
  const p99 = newRow('their answer, 99 of 100', 'ms', 2);
  const uploaded = newRow('images of 1 MiB uploaded meanwhile', '1/s', 0);
  const made = newRow('thumbnails made meanwhile', '1/s', 1);

  await withTargets(builds, async () => {
    const threads = new Map<Collab, string>();
    for (const build of builds) {
      await seedUsers(build, 50);
      threads.set(build, threadsFile(await seedThreads(build, 500, 1)));
      await runWrk('create', build, threads.get(build)!, plan.warmUpSeconds);
      await runUploads(build, uploads, 1);
      await thumbnailsMade(build.dir);
    }
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const build of inRound(builds, round)) {
        record(alone, build.name, (await runWrk('create', build, threads.get(build)!, seconds)).perSecond);
        const before = keptFiles(build.dir).thumbnails.length;
        const uploadSeconds = seconds + 2 * marginSeconds;
        const uploading = runUploads(build, uploads, uploadSeconds);
        await new Promise((resolve) => setTimeout(resolve, marginSeconds * 1000));
        const comments = await runWrk('create', build, threads.get(build)!, seconds);
        const { perSecond } = await uploading;
        record(disturbed, build.name, comments.perSecond);
        record(p99, build.name, comments.p99Ms);
        record(uploaded, build.name, perSecond);
        record(made, build.name, (keptFiles(build.dir).thumbnails.length - before) / uploadSeconds);
        await thumbnailsMade(build.dir);
      }
    }
  });
  for (const { dir } of builds) rmSync(dir, { recursive: true });

  const measured = medianOf(disturbed, 'collab') / medianOf(alone, 'collab');
  const goal = {
    label: 'comments created: beside uploads and thumbnails / undisturbed',
    measured,
    bound,
    kind: 'at least',
    unit: 'x',
    passed: measured >= bound,
  } as const;
  return {
    name: 'mixed',
    title: 'create comment beside uploads',
    rows: [alone, disturbed, p99, uploaded, made],
    goals: plan.before === null ? [goal] : [beforeGoal(disturbed)],
  };
}
