// Runs compiled test files, one after the other, each as one test of this process, and prints TAP.
import { pathToFileURL } from 'node:url';
import { compiledPath } from './bundle-path.ts';
import { setCurrentTest } from './current-test.ts';

// tap puts the arguments into the names of the folders that `t.testdir` makes.
const [folder = '', ...files] = process.argv.splice(2);
const { default: t } = await import('tap');

for (const file of files) {
  await t.test(file, async (test) => {
    setCurrentTest(test);
    await import(pathToFileURL(compiledPath(folder, file)).href);
  });
}
// A server or a timer that a file forgot must not hold the process.
t.teardown(() => setImmediate(() => process.exit()));
