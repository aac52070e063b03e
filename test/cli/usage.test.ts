import t from 'tap';
import { createProgram } from '../../src/cli/main.ts';
import { examplesOf } from '../../src/cli/command.ts';
import type { Command } from 'commander';
import { collab } from '../helpers/cli.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** All commands that do something, by their words: `env create`. */
async function commands(): Promise<Map<string, Command>> {
  const found = new Map<string, Command>();
  const walk = (command: Command, words: readonly string[]): void => {
    if (command.commands.length === 0) found.set(words.join(' '), command);
    for (const inner of command.commands) walk(inner, [...words, inner.name()]);
  };
  walk(await createProgram([]), []);
  return found;
}

t.test('the commands are those of this version, without stubs for later ones', async (t) => {
  t.strictSame([...(await commands()).keys()], [
    'init',
    'start',
    'status',
    'doctor',
    'config check',
    'config example',
    'env create',
    'env list',
    'env show',
    'env update',
    'env delete',
    'key create',
    'key list',
    'key revoke',
    'key rotate',
    'user add',
    'user list',
    'user show',
    'token create',
    'admin create',
    'admin list',
    'admin password',
    'admin remove',
    'tail',
    'backup',
    'restore',
    'export',
    'import',
    'gc',
    'openapi',
  ]);
});

t.test('every command has help with a sentence and examples that call it', async (t) => {
  for (const [words, command] of await commands()) {
    t.match(command.description(), /^[A-Z].*\.$/s, `${words} is described`);
    t.ok(examplesOf(command).length > 0, `${words} has examples`);
    for (const example of examplesOf(command)) t.match(example, new RegExp(`(^|\\| )collab ${words}`), example);
  }
});

t.test('help shows the examples and the options that every command takes', async (t) => {
  const { code, stdout } = await collab(['key', 'create', '--help']);
  t.equal(code, 0);
  t.match(stdout, /Examples:\n {2}\$ collab key create/);
  t.match(stdout, /--dir <folder>/);
  t.match(stdout, /--json/);
});

t.test('the version goes to standard output', async (t) => {
  t.match(await collab(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' });
});

t.test('wrong usage exits with 2 and says on standard error what is wrong', async (t) => {
  const cases: [args: string[], stderr: RegExp][] = [
    [[], /Usage: collab/],
    [['env'], /Usage: collab env/],
    [['statsu'], /unknown command 'statsu'\n\(Did you mean status\?\)/],
    [['webhook'], /unknown command 'webhook'/],
    [['env', 'creat', 'x'], /unknown command 'creat'\n\(Did you mean create\?\)/],
    [['env', 'create'], /missing required argument 'slug'/],
    [['env', 'create', 'a', 'b'], /too many arguments/],
    [['env', 'list', '--jsn'], /unknown option '--jsn'\n\(Did you mean --json\?\)/],
    [['key', 'create', '--env', 'default'], /required option '--kind <kind>' not specified/],
    [['key', 'create', '--env', 'default', '--kind', 'golden'], /--kind must be one of secret, publishable, signing, not "golden"/],
    [['token', 'create', '--env', 'default', '--user', 'ann', '--ttl', 'soon'], /--ttl must be a duration such as 45s, 30m, 1h or 90d, not "soon"/],
    [['tail', '--env', 'default', '--since', '-1'], /--since must be a whole number/],
  ];
  const cwd = tempFolder(t);
  await Promise.all(
    cases.map(async ([args, stderr]) => {
      const ended = await collab(args, { cwd });
      t.match(ended, { code: 2, stdout: '', stderr }, `collab ${args.join(' ')}`);
    }),
  );
});

t.test('a command without a folder says so and how to make one', async (t) => {
  const cwd = tempFolder(t);
  const { code, stdout, stderr } = await collab(['env', 'list'], { cwd });
  t.equal(code, 1);
  t.equal(stdout, '');
  t.match(stderr, /There is no Collab folder at .*collab\./);
  t.match(stderr, /→ .*collab init --dir/);
});

t.test('a faulty configuration exits with 2, naming option, reason and source', async (t) => {
  const { code, stderr } = await collab(['env', 'list', '--dir', tempFolder(t)], { env: { COLLAB_PROT: '1', COLLAB_WORKERS: '0' } });
  t.equal(code, 2);
  t.match(stderr, /COLLAB_PROT is no option; did you mean COLLAB_PORT\?/);
  t.match(stderr, /workers must be a whole number from 1 to 256 or auto, not "0" \(in the variable COLLAB_WORKERS\)/);
});
