import { dirname } from 'node:path';
import t from 'tap';
import { type ErrorCode, errorKinds } from '../src/model/errors.ts';
import { isBarrel, projectFiles, readSource } from './helpers/sources.ts';
import { LONG_TESTS } from './run/long-tests.ts';

const files = projectFiles();
const sources = files.filter((path) => /^(?:src|bin|plugins)\/.*\.ts$/.test(path));

t.test('no source file is longer than 400 lines', (t) => {
  t.ok(sources.length > 0);
  for (const path of sources) {
    const lines = readSource(path).split('\n').length - 1;
    if (lines > 400) t.fail(`${path} has ${lines} lines`);
  }
  t.end();
});

t.test('no folder has more than 23 source files side by side', (t) => {
  const counts = new Map<string, number>();
  for (const path of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  for (const [folder, count] of counts) if (count > 23) t.fail(`${folder} has ${count} files`);
  t.end();
});

t.test('no module only hands on what others export', (t) => {
  t.strictSame(
    sources.filter((path) => isBarrel(readSource(path))),
    [],
  );
  t.ok(isBarrel("/** All of it. */\nexport * from './a.ts';\nexport { b } from './b.ts';\n"));
  t.notOk(isBarrel("export * from './a.ts';\nexport const b = 1;\n"));
  t.end();
});

t.test('no file names a package registry', (t) => {
  const addresses = [
    ['registry', 'npmjs', 'org'],
    ['deb', 'debian', 'org'],
    ['registry', 'yarnpkg', 'com'],
  ].map((parts) => parts.join('.'));
  const naming = files.filter((path) => {
    const text = readSource(path);
    return addresses.some((address) => text.includes(address));
  });
  t.strictSame(naming, []);
  t.end();
});

t.test('docs/errors.md lists exactly the codes of src/model/errors.ts', (t) => {
  const rows = (Object.keys(errorKinds) as ErrorCode[]).map((code) => {
    const { status, close, meaning } = errorKinds[code];
    return `| \`${code}\` | ${status} | ${close} | ${meaning} |`;
  });
  const listed = readSource('docs/errors.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  t.strictSame(listed, rows, 'its table is that of the catalogue');
  t.end();
});

t.test(
  'the lockfile names every optional package, so that npm ci works on platforms that it was not written on',
  (t) => {
    const { packages } = JSON.parse(readSource('package-lock.json')) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>;
    };
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      ),
    );
    t.strictSame(missing, []);
    t.end();
  },
);

t.test('every package of a lockfile that comes from a registry has its integrity, and none an address', (t) => {
  for (const path of ['package-lock.json', 'bench/package-lock.json']) {
    const { packages } = JSON.parse(readSource(path)) as {
      packages: Record<string, { integrity?: string; resolved?: string; link?: boolean }>;
    };
    const installed = Object.entries(packages).filter(([folder, { link }]) => folder !== '' && link !== true);
    t.ok(installed.length > 0);
    t.strictSame(
      installed.filter(([, { integrity = '' }]) => !/^sha512-[\w+/]{86}==$/.test(integrity)).map(([folder]) => folder),
      [],
      path,
    );
    t.strictSame(
      installed.filter(([, { resolved }]) => resolved !== undefined).map(([folder]) => folder),
      [],
      path,
    );
  }
  t.end();
});

t.test('every long test that the runner names exists', (t) => {
  t.strictSame(
    [...LONG_TESTS].filter((path) => !files.includes(path)),
    [],
  );
  t.end();
});
