import { rmSync } from 'node:fs';
import { installCollab, startCollab } from '../lib/collab.ts';
import { makeImages } from '../lib/images.ts';
import { type CaseResult, medianOf, newRow, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { withTargets } from '../lib/rounds.ts';
import { seedThreads, seedUsers } from '../lib/seed.ts';
import { keptFiles, runUploads, thumbnailsMade, uploadsFile } from '../lib/uploads.ts';
import { runWrk, threadsFile } from '../lib/wrk.ts';

const seconds = 1;
/** Uploads begin so much earlier than the comments, and end so much later: the whole run of the comments is disturbed. */
const marginSeconds = 0.5;
const bound = 0.5;

/** Create comments while uploads and thumbnails run as fast as they can, on the same core, beside nothing else. */
export async function mixedCase(plan: Plan): Promise<CaseResult> {
  const installation = installCollab(plan.bin);
  const collab = await startCollab(installation);
  const uploads = uploadsFile(await makeImages(8, { width: 2400, height: 1800, bytes: 1024 * 1024 }));
  const alone = newRow('comments created, undisturbed', '1/s', 0);
  const disturbed = newRow('comments created beside uploads and thumbnails', '1/s', 0);
  const p99 = newRow('their answer, 99 of 100', 'ms', 2);
  const uploaded = newRow('images of 1 MiB uploaded meanwhile', '1/s', 0);
  const made = newRow('thumbnails made meanwhile', '1/s', 1);

  await withTargets([collab], async () => {
    await seedUsers(collab, 50);
    const threads = threadsFile(await seedThreads(collab, 500, 1));
    await runWrk('create', collab, threads, plan.warmUpSeconds);
    await runUploads(collab, uploads, 1);
    await thumbnailsMade(installation.dir);
    for (let round = 0; round < plan.rounds; round += 1) {
      record(alone, 'collab', (await runWrk('create', collab, threads, seconds)).perSecond);
      const before = keptFiles(installation.dir).thumbnails.length;
      const uploadSeconds = seconds + 2 * marginSeconds;
      const uploading = runUploads(collab, uploads, uploadSeconds);
      await new Promise((resolve) => setTimeout(resolve, marginSeconds * 1000));
      const comments = await runWrk('create', collab, threads, seconds);
      const { perSecond } = await uploading;
      record(disturbed, 'collab', comments.perSecond);
      record(p99, 'collab', comments.p99Ms);
      record(uploaded, 'collab', perSecond);
      record(made, 'collab', (keptFiles(installation.dir).thumbnails.length - before) / uploadSeconds);
      await thumbnailsMade(installation.dir);
    }
  });
  rmSync(installation.dir, { recursive: true });

  const measured = medianOf(disturbed, 'collab') / medianOf(alone, 'collab');
  const goal = { label: 'comments created: beside uploads and thumbnails / undisturbed', measured, bound, kind: 'at least', unit: 'x', passed: measured >= bound } as const;
  return { name: 'mixed', title: 'create comment beside uploads', rows: [alone, disturbed, p99, uploaded, made], goals: [goal] };
}
