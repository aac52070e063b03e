import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { fixtureArgs } from '../helpers/fixture-program.ts';

/** A module that prints what it finds around it. */
const source = (greeting: string): string =>
  wrapped(`const { basename } = require('node:path');
console.log('${greeting}', basename(__filename), basename(__dirname), typeof module.exports, require('./other.cjs'));`);

/** Code in the wrapper of CommonJS modules. */
const wrapped = (code: string): string => `(function (exports, require, module, __filename, __dirname) {${code}\n})`;

/** A folder with the module `main.cjs`; returns the paths of the module and its cache, and a function that runs it. */
function project(t: Test) {
  const folder = t.testdir({
    data: {},
    code: { 'main.cjs': source('hello'), 'other.cjs': 'module.exports = "other";' },
  });
  const file = join(folder, 'code/main.cjs');
  const cache = join(folder, 'data/cache/main.bin');
  const run = (...options: string[]): string =>
    execFileSync(process.execPath, [...options, ...fixtureArgs('code-cache-user'), file, cache], {
      encoding: 'utf8',
    }).trim();
  return { file, cache, run };
}

/** Identifies a written file: it is replaced when it is written again. */
const versionOf = (path: string): number => statSync(path).ino;

t.test('a module runs as with require, and its code cache is written once', (t) => {
  const { cache, run } = project(t);
  t.equal(run(), 'hello main.cjs code object other');
  const written = versionOf(cache);
  t.equal(statSync(cache).mode & 0o777, 0o600);
  t.equal(run(), 'hello main.cjs code object other');
  t.equal(versionOf(cache), written, 'the second run has used it');
  t.strictSame(readdirSync(join(cache, '..')), ['main.bin'], 'nothing unfinished is left');
  t.end();
});

t.test('a cache that is damaged or of other code is replaced', (t) => {
  const { file, cache, run } = project(t);
  run();
  let written = versionOf(cache);
  const replaced = (): boolean => written !== (written = versionOf(cache));
  for (const at of [0, 40, readFileSync(cache).length - 1]) {
    const content = readFileSync(cache);
    content[at] = (content[at] ?? 0) ^ 1;
    writeFileSync(cache, content);
    t.equal(run(), 'hello main.cjs code object other');
    t.ok(replaced(), `a flipped bit in byte ${at} is noticed`);
  }
  writeFileSync(cache, readFileSync(cache).subarray(0, 100));
  t.equal(run(), 'hello main.cjs code object other');
  t.ok(replaced(), 'a cut is noticed');
  writeFileSync(file, source('adieu'));
  t.equal(run(), 'adieu main.cjs code object other', 'code of the same length runs, not the one in the cache');
  t.ok(replaced());
  t.equal(run('--no-lazy'), 'adieu main.cjs code object other', 'a cache of other flags of V8 is not used');
  t.ok(replaced());
  t.end();
});

t.test('a module runs although its cache cannot be written', (t) => {
  const { cache, run } = project(t);
  writeFileSync(join(cache, '..'), 'a file in the place of the folder');
  t.equal(run(), 'hello main.cjs code object other');
  t.end();
});

t.test('a process that fails does not write a cache, since it may have compiled only a part', (t) => {
  const { file, cache, run } = project(t);
  writeFileSync(file, wrapped('process.exit(1);'));
  t.throws(() => run());
  t.notOk(existsSync(cache));
  t.end();
});
