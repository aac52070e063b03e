import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collab, collabJson, type InitOutput } from '../helpers/cli.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

t.test('init makes a folder and prints its keys as one object', async (t) => {
  const dir = join(tempFolder(t), 'new', 'folder');
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.strictSame(Object.keys(made), ['dir', 'environment', 'secretKey', 'publishableKey', 'jwtSecret', 'jwtKid']);
  t.equal(made.dir, dir);
  t.strictSame(Object.keys(made.environment), ['id', 'slug']);
  t.equal(made.environment.slug, 'default');
  t.match(made.secretKey, /^sk_default_[0-9A-Za-z]{43}$/);
  t.match(made.publishableKey, /^pk_default_[0-9A-Za-z]{43}$/);
  t.ok(Buffer.byteLength(made.jwtSecret) >= 32);
  t.strictSame(JSON.parse(readFileSync(join(dir, 'config.json'), 'utf8')), { host: '127.0.0.1', port: 8787 });
  t.strictSame(readdirSync(join(dir, 'data')), ['store'], 'nothing is left over of the setup');
  t.equal(statSync(join(dir, 'data')).mode & 0o077, 0, 'others cannot read the data');
});

t.test('a second init changes nothing, says so, and shows no secret', async (t) => {
  const dir = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  const before = readFileSync(join(dir, 'config.json'), 'utf8');
  const again = await collabJson<object>(t, ['init', '--dir', dir]);
  t.strictSame(again, { dir, environment: made.environment, alreadyInitialised: true });
  const { code, stdout } = await collab(['init', '--dir', dir]);
  t.equal(code, 0);
  t.match(stdout, /was made before: nothing was changed/);
  for (const secret of [made.secretKey, made.jwtSecret]) t.notOk(stdout.includes(secret));
  t.equal(readFileSync(join(dir, 'config.json'), 'utf8'), before);
  const { items } = await collabJson<{ items: unknown[] }>(t, ['key', 'list', '--env', 'default', '--dir', dir]);
  t.equal(items.length, 3, 'a secret, a publishable and a signing key');
});

t.test('for people it prints the keys and what to do next', async (t) => {
  const dir = tempFolder(t);
  const { code, stdout, stderr } = await collab(['init', '--dir', dir]);
  t.equal(code, 0);
  t.equal(stderr, '');
  t.match(stdout, /secret key +sk_default_/);
  t.match(stdout, /not shown again/);
  t.match(stdout, new RegExp(`Next:\n {2}\\S.* start --dir ${dir}\n`));
});

t.test('without --dir it makes ./collab, and commands then work from inside and beside it', async (t) => {
  const cwd = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init'], { cwd });
  t.ok(made.dir.endsWith('/collab'));
  for (const place of [cwd, made.dir]) {
    const { items } = await collabJson<{ items: { slug: string }[] }>(t, ['env', 'list'], { cwd: place });
    t.strictSame(items.map(({ slug }) => slug), ['default']);
  }
});

t.test('a config.json that is there already is kept and obeyed', async (t) => {
  const dir = tempFolder(t);
  const text = '{ "dataDir": "./elsewhere", "port": 9000 }';
  writeFileSync(join(dir, 'config.json'), text);
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  t.equal(readFileSync(join(dir, 'config.json'), 'utf8'), text);
  t.ok(existsSync(join(dir, 'elsewhere', 'store')));
  t.notOk(existsSync(join(dir, 'data')));
});

t.test('a lost config.json is made again, the data stays', async (t) => {
  const dir = tempFolder(t);
  const made = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  rmSync(join(dir, 'config.json'));
  t.match(await collabJson<object>(t, ['init', '--dir', dir]), { environment: made.environment, alreadyInitialised: true });
  t.ok(existsSync(join(dir, 'config.json')));
});

t.test('a folder without config.json works: its options may come from variables', async (t) => {
  const dir = tempFolder(t);
  await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  rmSync(join(dir, 'config.json'));
  const { items } = await collabJson<{ items: unknown[] }>(t, ['env', 'list', '--dir', dir], { env: { COLLAB_DATA_DIR: join(dir, 'data') } });
  t.equal(items.length, 1);
  t.notOk(existsSync(join(dir, 'config.json')));
});

t.test('of two at once one makes the folder, and both end well', async (t) => {
  const dir = tempFolder(t);
  const outputs = await Promise.all([1, 2].map(() => collabJson<Partial<InitOutput>>(t, ['init', '--dir', dir])));
  t.equal(outputs.filter(({ secretKey }) => secretKey !== undefined).length, 1);
  const { items } = await collabJson<{ items: unknown[] }>(t, ['env', 'list', '--dir', dir]);
  t.equal(items.length, 1);
});

t.test('a place where no folder can be made is named', async (t) => {
  const file = join(tempFolder(t), 'file');
  writeFileSync(file, '');
  const { code, stderr } = await collab(['init', '--dir', join(file, 'inside')]);
  t.equal(code, 2);
  t.match(stderr, /ENOTDIR/);
});
