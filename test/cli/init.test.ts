import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { currentProcess } from '../../src/lib/process/process-identity.ts';
import { type InitOutput, startCollab } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { readSource } from '../helpers/sources.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('init creates a folder and prints its keys as one object', async (t) => {
  const dir = join(tempFolder(t), 'new', 'folder');
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.strictSame(Object.keys(made), ['dir', 'environment', 'secretKey', 'publishableKey', 'jwtSecret', 'jwtKid']);
  t.equal(made.dir, dir);
  t.strictSame(Object.keys(made.environment), ['id', 'slug']);
  t.equal(made.environment.slug, 'default');
  t.match(made.secretKey, /^sk_default_[0-9A-Za-z]{43}$/);
  t.match(made.publishableKey, /^pk_default_[0-9A-Za-z]{43}$/);
  t.ok(Buffer.byteLength(made.jwtSecret) >= 32);
  t.strictSame(JSON.parse(readFileSync(join(dir, 'config.json'), 'utf8')), {
    $schema: './config.schema.json',
    host: '127.0.0.1',
    port: 8787,
  });
  t.equal(readFileSync(join(dir, 'config.schema.json'), 'utf8'), readSource('config.schema.json'));
  t.match(await collabJson<object>(t, ['config', 'check', '--dir', dir]), { valid: true });
  t.strictSame(readdirSync(join(dir, 'data')), ['store'], 'nothing is left over of the setup');
  t.equal(statSync(join(dir, 'data')).mode & 0o077, 0, 'others cannot read the data');
});

t.test('a second init changes nothing, reports that, and shows no secret', async (t) => {
  const dir = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  const before = readFileSync(join(dir, 'config.json'), 'utf8');
  const again = await collabJson<object>(t, ['init', '--dir', dir]);
  t.strictSame(again, { dir, environment: made.environment, alreadyInitialised: true });
  const { code, stdout } = await collab(['init', '--dir', dir]);
  t.equal(code, 0);
  t.match(stdout, /exists already: nothing was changed/);
  for (const secret of [made.secretKey, made.jwtSecret]) t.notOk(stdout.includes(secret));
  t.equal(readFileSync(join(dir, 'config.json'), 'utf8'), before);
  const { items } = await collabJson<{ items: unknown[] }>(t, ['key', 'list', '--env', 'default', '--dir', dir]);
  t.equal(items.length, 3, 'a secret, a publishable and a signing key');
});

t.test('as text it prints the keys and the next steps', async (t) => {
  const dir = tempFolder(t);
  const { code, stdout, stderr } = await collab(['init', '--dir', dir]);
  t.equal(code, 0);
  t.equal(stderr, '');
  t.match(stdout, /secret key +sk_default_/);
  t.match(stdout, /not shown again/);
  t.match(stdout, new RegExp(`Next:\n {2}\\S.* start --dir ${dir}\n`));
});

t.test('without --dir it creates ./collab, and commands then work inside of it and next to it', async (t) => {
  const cwd = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init'], { cwd });
  t.ok(made.dir.endsWith('/collab'));
  for (const place of [cwd, made.dir]) {
    const { items } = await collabJson<{ items: { slug: string }[] }>(t, ['env', 'list'], { cwd: place });
    t.strictSame(
      items.map(({ slug }) => slug),
      ['default'],
    );
  }
});

t.test('an existing config.json is kept and used', async (t) => {
  const dir = tempFolder(t);
  const text = '{ "dataDir": "./elsewhere", "port": 9000 }';
  writeFileSync(join(dir, 'config.json'), text);
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.equal(readFileSync(join(dir, 'config.json'), 'utf8'), text);
  t.ok(existsSync(join(dir, 'elsewhere', 'store')));
  t.notOk(existsSync(join(dir, 'data')));
});

t.test('a lost config.json is recreated, and the data stays', async (t) => {
  const dir = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  rmSync(join(dir, 'config.json'));
  t.match(await collabJson<object>(t, ['init', '--dir', dir]), {
    environment: made.environment,
    alreadyInitialised: true,
  });
  t.ok(existsSync(join(dir, 'config.json')));
});

t.test('a folder without config.json works, because options may come from variables', async (t) => {
  const dir = tempFolder(t);
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  rmSync(join(dir, 'config.json'));
  const { items } = await collabJson<{ items: unknown[] }>(t, ['env', 'list', '--dir', dir], {
    env: { COLLAB_DATA_DIR: join(dir, 'data') },
  });
  t.equal(items.length, 1);
  t.notOk(existsSync(join(dir, 'config.json')));
});

t.test('of two concurrent inits one creates the folder, and both succeed', async (t) => {
  const dir = tempFolder(t);
  const outputs = await Promise.all([1, 2].map(() => collabJson<Partial<InitOutput>>(t, ['init', '--dir', dir])));
  t.equal(outputs.filter(({ secretKey }) => secretKey !== undefined).length, 1);
  const { items } = await collabJson<{ items: unknown[] }>(t, ['env', 'list', '--dir', dir]);
  t.equal(items.length, 1);
});

t.test('a path where no folder can be created is reported', async (t) => {
  const file = join(tempFolder(t), 'file');
  writeFileSync(file, '');
  const { code, stderr } = await collab(['init', '--dir', join(file, 'inside')]);
  t.equal(code, 2);
  t.match(stderr, /ENOTDIR/);
});

t.test('what a killed init leaves is removed', async (t) => {
  const dir = tempFolder(t);
  const leftover = await killedMidway(t, dir);
  const { stdout } = await collab(['doctor', '--dir', dir, '--json']);
  const { checks } = JSON.parse(stdout) as {
    checks: { name: string; level: string; finding: string; remedy: string | null }[];
  };
  t.match(
    checks.find(({ name }) => name === 'leftovers'),
    { level: 'warn', finding: leftover, remedy: `collab init --dir ${dir}` },
  );
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.strictSame(setupsIn(dir), []);

  const second = join(dir, 'data', '.setup-1');
  cpSync(endedSetup(t), second, { recursive: true });
  await collabJson<object>(t, ['init', '--dir', dir]);
  t.strictSame(setupsIn(dir), [], 'also beside a store that is whole');
});

t.test('an init that is running elsewhere at the same time is not disturbed', async (t) => {
  const dir = tempFolder(t);
  const busy = join(dir, 'data', '.setup-2');
  mkdirSync(busy, { recursive: true });
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.strictSame(setupsIn(dir), ['.setup-2'], 'it has not said yet who it is');
  const longAgo = new Date(Date.now() - 3_600_000);
  utimesSync(busy, longAgo, longAgo);
  await collabJson<object>(t, ['init', '--dir', dir]);
  t.strictSame(setupsIn(dir), []);
});

t.test('the suggested commands work when pasted, also with a space in the folder', async (t) => {
  const dir = join(tempFolder(t), "Ann's comments");
  const { stdout } = await collab(['init', '--dir', dir]);
  const hint = /collab\.(?:js|ts)? ?start --dir .*$|start --dir .*$/m.exec(stdout)?.[0] ?? '';
  const word = hint.slice(hint.indexOf('--dir ') + 6);
  t.equal(execFileSync('sh', ['-c', `printf %s ${word}`], { encoding: 'utf8' }), dir);
  const { stderr } = await collab(['env', 'list', '--dir', `${dir} 2`]);
  const other = /collab init --dir (.*)$/m.exec(stderr)?.[1] ?? '';
  t.equal(execFileSync('sh', ['-c', `printf %s ${other}`], { encoding: 'utf8' }), `${dir} 2`);
});

const setupsIn = (dir: string): string[] => readdirSync(join(dir, 'data')).filter((name) => name.startsWith('.setup-'));

/** Kills an init with SIGKILL while it prepares the store. Returns what it has left. */
async function killedMidway(t: Test, dir: string): Promise<string> {
  for (;;) {
    const { process: child, end } = startCollab(t, ['init', '--dir', dir]);
    while (
      child.exitCode === null &&
      !(
        existsSync(join(dir, 'data')) && setupsIn(dir).some((name) => existsSync(join(dir, 'data', name, 'owner.json')))
      )
    ) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await end('SIGKILL');
    const [left] = existsSync(join(dir, 'data')) ? setupsIn(dir) : [];
    // Without its owner file, it was killed while it cleaned up.
    if (left !== undefined && existsSync(join(dir, 'data', left, 'owner.json'))) return join(dir, 'data', left);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A setup folder of a process that has ended. */
function endedSetup(t: Test): string {
  const folder = tempFolder(t);
  writeFileSync(join(folder, 'owner.json'), JSON.stringify({ ...currentProcess(), pid: 4_000_000 }));
  return folder;
}
