import { IdleCores } from './idle-cores.ts';
import { type FileResult, Job, type JobOptions } from './job.ts';
import type { Report } from './report.ts';

/** How often to look for idle cores, in milliseconds. */
const IDLE_EVERY_MS = 1_000;
/** The share of all cores that has to be idle for one more process. */
const IDLE_SHARE = 0.3;

/** How to run the processes of a plan. */
export interface JobsOptions extends Pick<JobOptions, 'folder' | 'memory' | 'timeoutS'> {
  /** Processes side by side. */
  readonly jobs: number;
  /** Processes side by side at most, while cores are idle. */
  readonly mostJobs: number;
  /** Null to print TAP instead. */
  readonly report: Report | null;
}

/**
 * Runs the processes of a plan: `jobs` at a time, and up to `mostJobs` while cores are idle, as many files wait for most
 * of their time. Files that a process did not reach run in one of their own.
 *
 * @param running has the processes while they run
 */
export async function runJobs(
  plan: readonly (readonly string[])[],
  running: Set<Job>,
  { jobs, mostJobs, report, ...options }: JobsOptions,
): Promise<FileResult[]> {
  const waiting = [...plan];
  const results: FileResult[] = [];
  const runNext = async (): Promise<void> => {
    const files = waiting.shift();
    if (files === undefined) return;
    const job = new Job(files, {
      ...options,
      onFile: (file) => report?.begun(file),
      onEnd: (file) => report?.ended(file),
      ...(report === null && { onLine: (line: string) => process.stdout.write(`${line}\n`) }),
    });
    running.add(job);
    const ended = await job.ended;
    running.delete(job);
    results.push(...ended);
    const left = files.filter((name) => !ended.some(({ file }) => file === name));
    // A process that reached no file at all would do so again.
    if (left.length > 0 && left.length < files.length) waiting.unshift(left);
    else if (left.length > 0) {
      for (const file of left) {
        const failed = unreached(file, job.errors);
        report?.ended(failed);
        results.push(failed);
      }
    }
  };
  const work = async (): Promise<void> => {
    while (waiting.length > 0) await runNext();
  };
  const further = new Set<Promise<void>>();
  const idle = new IdleCores();
  const filling = setInterval(() => {
    if (idle.share() < IDLE_SHARE || running.size >= mostJobs) return;
    const one = runNext().finally(() => further.delete(one));
    further.add(one);
  }, IDLE_EVERY_MS);
  await Promise.all(Array.from({ length: jobs }, work));
  // One of these can leave files for a process of their own.
  while (further.size > 0) {
    await Promise.all(further);
    await work();
  }
  clearInterval(filling);
  return results;
}

/** The result of a file whose process ended before it began. */
function unreached(file: string, errors: string): FileResult {
  const failures = [{ path: [file], text: 'its process ended before the file began' }];
  return { file, ended: true, ok: false, passed: 0, failed: 1, failures, skips: [], ms: 0, cpuS: null, errors };
}
