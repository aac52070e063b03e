import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createProgram } from '../../src/cli/main.ts';
import { examplesOf } from '../../src/cli/command.ts';
import type { Command } from 'commander';
import { collabCommand, withoutProgress } from '../helpers/cli.ts';
import { collab } from '../helpers/command.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** All commands except groups, by their words: `env create`. */
async function commands(): Promise<Map<string, Command>> {
  const found = new Map<string, Command>();
  const walk = (command: Command, words: readonly string[]): void => {
    if (command.commands.length === 0) found.set(words.join(' '), command);
    for (const inner of command.commands) walk(inner, [...words, inner.name()]);
  };
  walk(await createProgram([]), []);
  return found;
}

t.test('the commands are exactly those that are implemented', async (t) => {
  t.strictSame(
    [...(await commands()).keys()],
    [
      'init',
      'start',
      'status',
      'doctor',
      'config check',
      'config example',
      'config schema',
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
      'room list',
      'room show',
      'room delete',
      'thread list',
      'thread show',
      'thread create',
      'thread update',
      'thread resolve',
      'thread reopen',
      'thread delete',
      'comment list',
      'comment show',
      'comment create',
      'comment edit',
      'comment delete',
      'upload list',
      'upload show',
      'upload create',
      'upload fetch',
      'upload delete',
      'notify explain',
      'token create',
      'admin create',
      'admin list',
      'admin password',
      'admin remove',
      'moderation list',
      'moderation show',
      'moderation approve',
      'moderation reject',
      'moderation backtest',
      'audit list',
      'audit verify',
      'audit export',
      'tail',
      'backup',
      'restore',
      'export',
      'import',
      'migrate',
      'plugin list',
      'plugin check',
      'plugin new',
      'gc',
      'compact',
      'openapi',
      'completion',
      'version',
    ],
  );
});

t.test('the help of every command has a sentence and examples that call it', async (t) => {
  for (const [words, command] of await commands()) {
    t.match(command.description(), /^[A-Z].*\.$/s, `${words} is described`);
    t.ok(examplesOf(command).length > 0, `${words} has examples`);
    for (const example of examplesOf(command)) t.match(example, new RegExp(`(^|\\| )collab ${words}`), example);
  }
});

t.test('help shows the examples and the global options', async (t) => {
  const { code, stdout } = await collab(['key', 'create', '--help']);
  t.equal(code, 0);
  t.match(stdout, /Examples:\n {2}\$ collab key create/);
  t.match(stdout, /--dir <folder>/);
  t.match(stdout, /--json/);
});

t.test('the version goes to standard output', async (t) => {
  t.match(await collab(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+(?:-dev\+[0-9a-f]{7,})?\n$/, stderr: '' });
});

t.test('wrong usage exits with 2 and the reason on standard error', async (t) => {
  const cases: [args: string[], stderr: RegExp][] = [
    [[], /Usage: collab/],
    [['env'], /Usage: collab env/],
    [['statsu'], /unknown command 'statsu'\n\(Did you mean status\?\)/],
    [['webhooks'], /unknown command 'webhooks'/],
    [['env', 'creat', 'x'], /unknown command 'creat'\n\(Did you mean create\?\)/],
    [['env', 'create'], /missing required argument 'slug'/],
    [['env', 'create', 'a', 'b'], /too many arguments/],
    [['env', 'list', '--jsn'], /unknown option '--jsn'\n\(Did you mean --json\?\)/],
    [['key', 'create', '--env', 'default'], /required option '--kind <kind>' not specified/],
    [
      ['key', 'create', '--env', 'default', '--kind', 'golden'],
      /--kind must be one of secret, publishable, signing, not "golden"/,
    ],
    [
      ['token', 'create', '--env', 'default', '--user', 'ann', '--ttl', 'soon'],
      /--ttl must be a duration such as 45s, 30m, 1h or 90d, not "soon"/,
    ],
    [['tail', '--env', 'default', '--since', '-1'], /--since must be a whole number/],
  ];
  const cwd = tempFolder(t);
  for (const [args, stderr] of cases)
    t.match(await collab(args, { cwd }), { code: 2, stdout: '', stderr }, `collab ${args.join(' ')}`);
});

t.test('wrong usage says where the usage is shown, unless the help does', async (t) => {
  const cases: [args: string[], remedy: string][] = [
    [['statsu'], '`collab --help` lists the commands.'],
    [['env', 'creat', 'x'], '`collab env --help` shows its usage.'],
    [['--dir', 'env', 'key', 'list', '--envi', 'x'], '`collab key list --help` shows its usage.'],
    [['key', 'create', '--env', 'default'], '`collab key create --help` shows its usage.'],
    [['key', 'create', '--env', 'default', '--kind', 'golden'], '`collab key create --help` shows its usage.'],
    [['webhook', 'add', '--env', 'default'], '`collab webhook add --help` shows its usage.'],
  ];
  for (const [args, remedy] of cases) {
    const { code, stderr } = await collab(args);
    t.equal(code, 2);
    t.equal(stderr.split('\n').at(-2), `  → ${remedy}`, `collab ${args.join(' ')}`);
    t.notMatch(stderr, /error:|Usage:/);
    const { error } = JSON.parse((await collab([...args, '--json'])).stderr) as { error: { remedies: string[] } };
    t.strictSame(error.remedies, [remedy]);
  }
  t.match(await collab(['env']), { code: 2, stderr: /^Usage: collab env/ });
});

t.test('a command without a folder reports that and how to create one', async (t) => {
  const cwd = tempFolder(t);
  const { code, stdout, stderr } = await collab(['env', 'list'], { cwd });
  t.equal(code, 1);
  t.equal(stdout, '');
  t.match(stderr, /There is no Collab folder at .*collab\./);
  t.match(stderr, /→ .*collab init --dir/);
});

t.test('an invalid configuration exits with 2, naming option, reason and source', async (t) => {
  const { code, stderr } = await collab(['env', 'list', '--dir', tempFolder(t)], {
    env: { COLLAB_PROT: '1', COLLAB_WORKERS: '0' },
  });
  t.equal(code, 2);
  t.match(stderr, /COLLAB_PROT is not an option; did you mean COLLAB_PORT\?/);
  t.match(stderr, /workers must be a whole number from 1 to 256 or auto, not "0" \(in the variable COLLAB_WORKERS\)/);
});

t.test('an empty path is refused, not taken as the current folder', async (t) => {
  const cwd = tempFolder(t);
  for (const words of ['start', 'init', 'config check', 'env list', 'backup x', 'openapi']) {
    t.match(
      await collab([...words.split(' '), '--dir', ''], { cwd, inside: true }),
      { code: 2, stdout: '', stderr: /^collab: --dir must be a path, but it is empty\.$/m },
      words,
    );
  }
  await collab(['init', '--dir', 'data'], { cwd });
  for (const [command, argument] of [
    ['backup', '<folder>'],
    ['restore', '<backup>'],
    ['export', '<file>'],
    ['import', '<file>'],
  ] as const) {
    t.match(await collab([command, '', '--dir', 'data'], { cwd }), {
      code: 2,
      stdout: '',
      stderr: `collab: ${argument} must be a path, but it is empty.`,
    });
  }
  t.strictSame(readdirSync(cwd), ['data']);
});

t.test(
  'a folder that cannot be created is reported at once',
  { skip: existsSync('/proc/self') ? false : 'no /proc here' },
  async (t) => {
    const dir = tempFolder(t);
    await collab(['init', '--dir', dir]);
    for (const args of [
      ['start', '--dir', '/proc/x'],
      ['init', '--dir', '/proc/x'],
      ['backup', '/proc/x', '--dir', dir],
    ]) {
      t.match(
        await collab(args, { inside: true }),
        {
          code: 1,
          stdout: '',
          stderr: /^collab: The folder \/proc\/x cannot be created: .*\n {2}→ Choose another folder\.\n$/,
        },
        args.join(' '),
      );
    }
  },
);

/** Runs a command whose output pipe is closed after its first output. */
async function cutOff(args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  const [node = '', ...rest] = collabCommand;
  const child = spawn(node, [...rest, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.once('data', () => child.stdout.destroy());
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr: withoutProgress(stderr) };
}

t.test('a command ends silently when its output pipe is closed, as by SIGPIPE', async (t) => {
  const dir = join(tempFolder(t), 'live');
  const file = join(tempFolder(t), 'many.ndjson');
  await collab(['init', '--dir', join(dir, 'x')]);
  const at = '2026-01-02T03:04:05.678Z';
  const { stdout } = await collab(['export', '-', '--dir', join(dir, 'x')]);
  const [head, environment = ''] = stdout.split('\n');
  const user = (id: string): string =>
    JSON.stringify({
      type: 'user',
      data: {
        id,
        userId: id,
        name: null,
        avatarUrl: null,
        email: null,
        kind: 'user',
        metadata: {},
        createdAt: at,
        updatedAt: at,
        firstSeenAt: null,
        lastSeenAt: null,
      },
    });
  const users = Array.from({ length: 5_000 }, (_, i) => user(`user${i}`));
  writeFileSync(file, [head, environment, ...users, '{"type":"end","lines":5001}', ''].join('\n'));
  await collab(['import', file, '--dir', dir]);
  for (const args of [['export', '-'], ['user', 'list', '--env', 'default', '--json'], ['openapi']]) {
    t.strictSame(await cutOff([...args, '--dir', dir]), { code: 141, stderr: '' }, args.join(' '));
  }
});
