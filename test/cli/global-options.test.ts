import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { version } from '../../src/model/version.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
await newFolder(dir);

interface ErrorDocument {
  readonly error: { readonly code: string; readonly message: string; readonly remedies: readonly string[] };
}

t.test(
  'collab version prints the version, between releases with the commit, and as JSON that of Node too',
  async (t) => {
    const own = (await collab(['--version'])).stdout.trimEnd();
    t.match(own, new RegExp(`^${version.replaceAll('.', '\\.')}(?:-dev\\+[0-9a-f]{7,})?$`));
    t.match(await collab(['version']), { code: 0, stdout: `collab ${own}, Node ${process.versions.node}` });
    t.strictSame(await collabJson(t, ['version']), {
      version: own,
      node: process.versions.node,
      platform: process.platform,
      arch: process.arch,
    });
  },
);

t.test(
  'COLLAB_DIR names the folder of every command, --dir overrides it, and an empty one counts as none',
  async (t) => {
    const env = { COLLAB_DIR: dir };
    const cwd = tempFolder(t);
    t.match(await collabJson(t, ['env', 'list'], { env, cwd }), { items: [{ slug: 'default' }] });
    t.match(await collabJson(t, ['config', 'check'], { env, cwd }), { valid: true, file: join(dir, 'config.json') });
    t.match(await collab(['env', 'list', '--dir', 'other'], { env, cwd }), {
      code: 1,
      stderr: new RegExp(`no Collab folder at ${join(cwd, 'other')}`),
    });
    t.match(await collab(['env', 'list'], { env: { COLLAB_DIR: '' }, cwd }), {
      code: 1,
      stderr: new RegExp(`no Collab folder at ${join(cwd, 'collab')}`),
    });
  },
);

t.test('the next steps name the folder again if the command line named it', async (t) => {
  const spaced = join(dir, 'a folder');
  const add = ['user', 'add', 'ann', '--env', 'default'];
  await collab(['init', '--dir', spaced]);
  t.match(
    (await collab([...add, '--dir', spaced])).stdout,
    `token create --env default --user ann --dir '${spaced}'\n`,
  );
  t.match((await collab([...add, `--dir=${dir}`])).stdout, `token create --env default --user ann --dir ${dir}\n`);
  t.match((await collab(add, { env: { COLLAB_DIR: dir } })).stdout, 'token create --env default --user ann\n');
  t.notMatch((await collab(['init', '--dir', dir])).stdout, /--dir .*--dir/, 'not twice');
});

t.test('remedies name the folder again if the command line named it, in the text and as JSON', async (t) => {
  const spaced = join(dir, "an operator's folder");
  const quoted = `'${spaced.replace("'", String.raw`'\''`)}'`;
  await collab(['init', '--dir', spaced]);
  const list = `\`collab env list --dir ${quoted}\` lists all environments.`;
  const show = ['env', 'show', '`collab x`'];
  t.equal(
    (await collab([...show, '--dir', spaced])).stderr,
    `collab: No environment has the id or slug \`collab x\`.\n  → ${list}\n`,
    'what was given stays as it is',
  );
  t.strictSame(
    (JSON.parse((await collab([...show, `--dir=${spaced}`, '--json'])).stderr) as ErrorDocument).error.remedies,
    [list],
  );
  t.match(
    (await collab(show, { env: { COLLAB_DIR: spaced } })).stderr,
    '→ `collab env list` lists all environments.\n',
  );
  t.match(
    (await collab(['env', 'update', 'default', '--dir', spaced])).stderr,
    '→ `collab env update --help` lists the options.\n',
    'help needs no folder',
  );
  t.match(
    (await collab(['webhook', 'test', 'wh_none', '--env', 'default', '--dir', spaced])).stderr,
    `→ \`collab webhook list --env default --dir ${quoted}\` lists them.\n`,
    'of a plugin too',
  );
  writeFileSync(join(spaced, 'config.json'), '{"prot": 1}');
  const remedy = `→ Correct it. \`collab config check --dir ${quoted}\` shows all problems, \`collab config example --dir ${quoted}\` all options.\n`;
  t.match((await collab(['doctor', '--dir', spaced])).stdout, remedy);
  const { checks } = await collabJson<{ checks: { name: string; remedy: string | null }[] }>(
    t,
    ['doctor', '--dir', spaced],
    { code: 1 },
  );
  t.equal(checks.find(({ name }) => name === 'config')?.remedy, remedy.slice(2, -1));
});

t.test('with --json a failure is one JSON document on standard error', async (t) => {
  const broken = join(dir, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'config.json'), '{"prot": 1}');
  const cases: [args: string[], exit: number, code: string, message: RegExp][] = [
    [['env', 'show', 'nowhere', '--dir', dir], 1, 'environment_not_found', /nowhere/],
    [['env', 'list', '--dir', join(dir, 'none')], 1, 'failed', /There is no Collab folder/],
    [['env', 'list', '--dir', broken], 2, 'invalid_configuration', /prot is not an option; did you mean port/],
    [
      ['token', 'create', '--env', 'default', '--user', 'ann', '--ttl', 'soon', '--dir', dir],
      2,
      'usage',
      /^--ttl must be a duration/,
    ],
    [['env', 'create', '--dir', dir], 2, 'usage', /^missing required argument 'slug'/],
    [['statsu'], 2, 'usage', /^unknown command 'statsu'\n\(Did you mean status\?\)/],
    [['env'], 2, 'usage', /^A command is missing\.$/],
    [['backup', '/proc/x', '--dir', dir], 1, 'system_error', /cannot be created/],
  ];
  for (const [args, exit, code, message] of cases) {
    const ended = await collab([...args, '--json']);
    t.match(ended, { code: exit, stdout: '' }, args.join(' '));
    const lines = ended.stderr.trimEnd().split('\n');
    t.equal(lines.length, 1);
    const { error } = JSON.parse(lines[0] ?? '') as ErrorDocument;
    t.match(error, { code, message, remedies: Array });
  }
});
