// Runs compiled test files, one after the other, each as one test of this process, and prints TAP.
import { pathToFileURL } from 'node:url';
import { compiledPath } from './bundle-path.ts';
import { setCurrentTest } from './current-test.ts';
import { printFewerLines } from './fewer-lines.ts';
import { JOB_VARIABLE, jobCpuSeconds } from './processor-time.ts';
import { CPU_COMMENT } from './tap-reader.ts';
import { doWithoutDomains } from './without-domains.ts';

// tap puts the arguments into the names of the folders that `t.testdir` makes.
const [folder = '', ...files] = process.argv.splice(2);
doWithoutDomains();
const { default: t, TestBase } = await import('tap');
printFewerLines(TestBase.prototype);
const job = process.env[JOB_VARIABLE] ?? '';
// The limit is that of a file: all files together may take longer.
const timeout = Number(process.env['TAP_TIMEOUT']) * 1000;
t.setTimeout(0);

let usedS = 0;
for (const file of files) {
  await t.test(file, { timeout }, async (test) => {
    setCurrentTest(test);
    await import(pathToFileURL(compiledPath(folder, file)).href);
  });
  const nowS = jobCpuSeconds(job);
  // A process that ended after its parent takes its time with it.
  if (nowS !== null) t.comment(`${CPU_COMMENT} ${Math.max(0, nowS - usedS).toFixed(2)} s`);
  usedS = nowS ?? 0;
}
// A server or a timer that a file forgot, or the browser that files share, must not hold the process.
t.teardown(() => setImmediate(() => process.exit()));
t.end();
