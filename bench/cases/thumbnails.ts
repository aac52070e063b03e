import { startBuilds } from '../lib/collab.ts';
import { bareThumbnailsPerSecond } from '../lib/file-peers.ts';
import { makeImages } from '../lib/images.ts';
import { beforeGoal, type CaseResult, newRow, ratioGoal, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { inRound, withTargets } from '../lib/rounds.ts';
import { keptFiles, placedAt, thumbnailsMade, uploadAll } from '../lib/uploads.ts';

/** Images that are uploaded per run. */
const backlog = 96;
/** If fewer thumbnails are left when the uploads have ended, the run is not valid. */
const leastLeft = 32;

/** Creates the thumbnails of a backlog of 1 MiB JPEGs. */
export async function thumbnailsCase(plan: Plan): Promise<CaseResult> {
  const builds = await startBuilds(plan);
  const images = await makeImages(8, { width: 2400, height: 1800, bytes: 1024 * 1024 });
  const perSecond = newRow('thumbnails of images of 1 MiB', '1/s', 1);
  const left = newRow('of these, made after the uploads', '', 0);

  await withTargets(builds, async () => {
    for (const build of builds) {
      await uploadAll(build, images);
      await thumbnailsMade(build.dir);
    }
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const build of inRound(builds, round)) {
        const earlier = new Set(keptFiles(build.dir).images);
        await uploadAll(
          build,
          Array.from({ length: backlog }, (_, i) => images[i % images.length]!),
        );
        const uploadedAt = Date.now();
        const { images: kept, thumbnails } = await thumbnailsMade(build.dir);
        // In the order of their creation. The first one after the uploads starts the clock, because it may have been
        // started earlier.
        const times = thumbnails
          .map(placedAt)
          .filter((at) => at > uploadedAt)
          .sort((a, b) => a - b);
        if (times.length < leastLeft)
          throw new Error(`only ${times.length} of ${backlog} thumbnails were left to make when the uploads had ended`);
        record(perSecond, build.name, ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1000);
        record(left, build.name, times.length);
        if (plan.before === null)
          record(perSecond, 'bare sharp', await bareThumbnailsPerSecond(kept.filter((path) => !earlier.has(path))));
      }
    }
  });

  const goals = [plan.before === null ? ratioGoal(perSecond, 'bare sharp', 0.9) : beforeGoal(perSecond)];
  return { name: 'thumbnails', title: 'thumbnails of a backlog', rows: [perSecond, left], goals };
}
