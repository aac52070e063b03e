// Runs the tests: node --import=tsx test/run/main.ts [file or folder …] [options]. `npm test` builds the program first.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { bundleTests } from './bundle.ts';
import { type FileResult, Job } from './job.ts';
import { IdleCores } from './idle-cores.ts';
import { parseOptions, type RunOptions, USAGE } from './options.ts';
import { makeMemoryFolder } from './memory-folder.ts';
import { LONG_TESTS } from './long-tests.ts';
import { planJobs } from './plan.ts';
import { Report } from './report.ts';

process.chdir(join(import.meta.dirname, '../..'));
/** Inside the project, so that compiled files find its packages; of this process, so that two runs do not meet. */
const folder = join(process.cwd(), '.test-build', String(process.pid));
const memory = makeMemoryFolder();
const running = new Set<Job>();
/** How often to look for idle cores, in milliseconds. */
const IDLE_EVERY_MS = 1_000;
/** The share of all cores that has to be idle for one more process. */
const IDLE_SHARE = 0.3;

// However this process ends, its jobs end with it.
process.on('exit', () => {
  for (const job of running) job.kill();
  rmSync(folder, { recursive: true, force: true });
  if (memory !== undefined) rmSync(memory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
});
// Not `once`: a second signal, as npm forwards one, would end this process before it has killed the jobs.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));

let options: RunOptions;
try {
  options = parseOptions(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n→ ${USAGE}\n`);
  process.exit(2);
}
process.exitCode = (await run(options)) ? 0 : 1;

/** @returns whether everything passed */
async function run({ paths, all, jobs, mostJobs, repeat, timeoutS, save, only, tap }: RunOptions): Promise<boolean> {
  const asked =
    only === undefined
      ? paths
      : [
          ...paths,
          ...readFileSync(only, 'utf8')
            .split('\n')
            .filter((line) => line !== ''),
        ];
  const found = only !== undefined && asked.length === 0 ? [] : testFiles(asked);
  const files = all || asked.length > 0 ? found : found.filter((file) => !LONG_TESTS.has(file));
  if (files.length === 0) {
    process.stderr.write(asked.length === 0 ? `${only} names no file\n` : `no test file matches ${asked.join(' ')}\n`);
    return false;
  }
  mkdirSync(folder, { recursive: true });
  await bundleTests([...files, ...fixtures()], folder);
  const plan = planJobs(files);
  let passed = true;
  for (let round = 0; round < repeat && passed; round += 1) {
    const report = tap ? null : new Report(files.length, found.length - files.length, process.stdout);
    const results = await runJobs(plan, { jobs, mostJobs, folder, timeoutS, report });
    report?.finished(results);
    const bad = results.filter(({ ok }) => !ok).map(({ file }) => file);
    if (save !== undefined) writeFileSync(save, bad.map((file) => `${file}\n`).join(''));
    passed = bad.length === 0 && files.every((name) => results.some(({ file }) => file === name));
  }
  return passed;
}

interface Running {
  readonly jobs: number;
  readonly mostJobs: number;
  readonly folder: string;
  readonly timeoutS: number;
  /** Null to print TAP instead. */
  readonly report: Report | null;
}

/**
 * Runs the processes of a plan: `jobs` at a time, and up to `mostJobs` while cores are idle, as many files wait for most
 * of their time. Files that a process did not reach run in one of their own.
 */
async function runJobs(
  plan: readonly (readonly string[])[],
  { jobs, mostJobs, folder: build, timeoutS, report }: Running,
): Promise<FileResult[]> {
  const waiting = [...plan];
  const results: FileResult[] = [];
  const runNext = async (): Promise<void> => {
    const files = waiting.shift();
    if (files === undefined) return;
    const job = new Job(files, {
      folder: build,
      memory,
      timeoutS,
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

/** The test files at these paths, which are files or folders. */
function testFiles(paths: readonly string[]): string[] {
  const all = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name}`)
    .toSorted();
  if (paths.length === 0) return all;
  const asked = paths.map((path) => relative('.', resolve(path)));
  for (const path of asked) if (!existsSync(path)) throw new Error(`there is no ${path}`);
  return all.filter((file) =>
    asked.some((path) => file === path || (statSync(path).isDirectory() && file.startsWith(`${path}/`))),
  );
}

/** The programs that tests start as processes. */
function fixtures(): string[] {
  return readdirSync('test/fixtures')
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `test/fixtures/${name}`);
}
