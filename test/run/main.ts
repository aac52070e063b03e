// Runs the tests: node --import=tsx test/run/main.ts [file or folder …] [options]. `npm test` builds the program first.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { bundleTests } from './bundle.ts';
import type { Job } from './job.ts';
import { LONG_TESTS } from './long-tests.ts';
import { makeMemoryFolder, removeMemoryFolder } from './memory-folder.ts';
import { parseOptions, type RunOptions, USAGE } from './options.ts';
import { planJobs } from './plan.ts';
import { Report } from './report.ts';
import { runJobs } from './run-jobs.ts';

process.chdir(join(import.meta.dirname, '../..'));
/** Inside the project, so that compiled files find its packages; of this process, so that two runs do not meet. */
const folder = join(process.cwd(), '.test-build', String(process.pid));
const memory = makeMemoryFolder();
const running = new Set<Job>();

// However this process ends, its jobs end with it.
process.on('exit', () => {
  for (const job of running) job.kill();
  rmSync(folder, { recursive: true, force: true });
  removeMemoryFolder(memory);
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
    const results = await runJobs(plan, running, { jobs, mostJobs, folder, memory, timeoutS, report });
    report?.finished(results);
    const bad = results.filter(({ ok }) => !ok).map(({ file }) => file);
    if (save !== undefined) writeFileSync(save, bad.map((file) => `${file}\n`).join(''));
    passed = bad.length === 0 && files.every((name) => results.some(({ file }) => file === name));
  }
  return passed;
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
