import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBuilds } from '../lib/collab.ts';
import { startNginx } from '../lib/file-peers.ts';
import { newFolder } from '../lib/folders.ts';
import { makeImages } from '../lib/images.ts';
import { beforeGoal, type CaseResult, newRow, ratioGoal, record } from '../lib/measure.ts';
import type { Plan } from '../lib/plan.ts';
import { ProcessorTimeRows } from '../lib/processor-time-rows.ts';
import { interleave, withTargets } from '../lib/rounds.ts';
import type { Target } from '../lib/target.ts';
import { headerLines, thumbnailsMade, uploadAll } from '../lib/uploads.ts';
import { runScript } from '../lib/wrk.ts';

const seconds = 1;

/** Serves a file of 200 kB that was requested before, with both credentials, over 64 connections. */
export async function serveCase(plan: Plan): Promise<CaseResult> {
  const files = newFolder('served');
  const builds = await startBuilds(plan);
  const nginx = plan.before === null ? await startNginx(files) : null;
  const targets: Target[] = nginx === null ? [...builds] : [...builds, nginx];
  const [image] = await makeImages(1, { width: 1000, height: 750, bytes: 200_000 });
  const cost = new ProcessorTimeRows('file');
  const perSecond = newRow('files of 200 kB served', '1/s', 0);
  const p50 = newRow('answer, median', 'ms', 2);
  const p99 = newRow('answer, 99 of 100', 'ms', 2);
  const busy = newRow('core of the server busy', '%', 0);

  await withTargets(targets, async () => {
    const paths = new Map<Target, string>();
    for (const build of builds) {
      const [path] = await uploadAll(build, [image!]);
      paths.set(build, path!);
      await thumbnailsMade(build.dir);
    }
    writeFileSync(join(files, 'photo.jpg'), image!);
    const pathOf = (target: Target): string => paths.get(target) ?? '/photo.jpg';
    for (const target of targets) await checkFile(target, pathOf(target), image!);
    const serve = (target: Target): ReturnType<typeof runScript> =>
      runScript('serve', target, { connections: 64, seconds, args: [pathOf(target), ...headerLines(target)] });

    await interleave(plan.rounds, targets, async (target) => {
      await cost.measure(target, async () => {
        // As in the case create, V8 has discarded the compiled code meanwhile.
        const warmUp = await serve(target);
        const run = await serve(target);
        if (run.bytesPerAnswer < image!.length)
          throw new Error(
            `${target.name}: an answer had ${run.bytesPerAnswer.toFixed(0)} bytes, the file has ${image!.length}`,
          );
        record(perSecond, target.name, run.perSecond);
        record(p50, target.name, run.p50Ms);
        record(p99, target.name, run.p99Ms);
        record(busy, target.name, run.serverBusy);
        return warmUp.requests + run.requests;
      });
    });
  });

  const beside = nginx === null ? [] : [ratioGoal(perSecond, 'nginx', 0.5)];
  return {
    name: 'serve',
    title: 'serve a file of 200 kB',
    rows: [...cost.rows, perSecond, p50, p99, busy],
    goals: plan.before === null ? beside : [beforeGoal(cost.total), beforeGoal(perSecond)],
  };
}

/** Checks that the target responds with exactly these bytes. */
async function checkFile(target: Target, path: string, expected: Buffer): Promise<void> {
  const headers = Object.fromEntries(headerLines(target).map((line) => line.split(': ') as [string, string]));
  const response = await fetch(`http://127.0.0.1:${target.server.port}${path}`, { headers });
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200 || !body.equals(expected))
    throw new Error(`${target.name}: GET ${path} answered ${response.status} with ${body.length} bytes`);
}
